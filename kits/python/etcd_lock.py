"""A lock in etcd, by hand over its JSON gateway: what the kit leaves to you."""

import base64
import http.client
import json
import math
import os

import fencepost_kit


def coded(text):
    return base64.b64encode(text.encode()).decode()


class EtcdLock(fencepost_kit.Lock):
    def acquire(self, owner, timeout):
        self.owner = owner
        if self.holder():
            return None
        lease = self.ask("lease/grant", {"TTL": math.ceil(self.task.ttl)})["ID"]
        free = {"key": self.key(), "target": "CREATE", "createRevision": "0"}
        put = {"key": self.key(), "value": coded(owner), "lease": lease}
        answer = self.ask("kv/txn", {"compare": [free], "success": [{"requestPut": put}]})
        if answer.get("succeeded"):
            self.lease = lease
            # The revision of the key that was made: it grows from each grant to the next.
            return int(answer["header"]["revision"])
        self.ask("lease/revoke", {"ID": lease})
        return None

    def release(self):
        ours = {"key": self.key(), "target": "VALUE", "value": coded(self.owner)}
        delete = {"requestDeleteRange": {"key": self.key()}}
        # The lease is left to run out: a key that goes with its lease has expired.
        if self.ask("kv/txn", {"compare": [ours], "success": [delete]}).get("succeeded"):
            return "released"
        return "superseded" if self.holder() else "expired"

    def renew(self):
        # A lease that is gone has no TTL.
        return int(self.ask("lease/keepalive", {"ID": self.lease})["result"].get("TTL", 0)) > 0

    def held(self):
        return self.holder() == coded(self.owner)

    def holder(self):
        kvs = self.ask("kv/range", {"key": self.key()}).get("kvs")
        return kvs and kvs[0]["value"]

    def key(self):
        return coded(os.environ.get("FENCEPOST_LOCK_KEY", f"/locks/{self.task.key}/holder"))

    def ask(self, path, request):
        """Asks the members one after the other. Who gets no answer does not know what was done."""
        problem = None
        for endpoint in self.task.endpoints:
            connection = http.client.HTTPConnection(endpoint, timeout=3)
            try:
                connection.request("POST", f"/v3/{path}", json.dumps(request))
                answer = connection.getresponse()
                text = answer.read().decode()
                if answer.status == 200:
                    return json.loads(text)
                problem = OSError(f"etcd answers {answer.status}: {text}")
            except ConnectionRefusedError as error:
                problem = error
            finally:
                connection.close()
        raise problem


if __name__ == "__main__":
    fencepost_kit.run(EtcdLock, only={"FENCEPOST_BACKEND": ["etcd"]})
