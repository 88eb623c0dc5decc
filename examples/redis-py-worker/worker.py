"""A fencepost worker with redis-py's own Lock, as its users use it.

The protocol is in docs/contract.md. What a lock of your own needs is in
`Worker`; `Harness` and `Resource` are the same for every lock.
"""

import contextlib
import ctypes
import hashlib
import http.client
import json
import os
import platform
import signal
import sys
import threading
import time
import urllib.parse
import uuid

import redis
import redis.lock
from redis.exceptions import LockError, LockNotOwnedError, RedisError

# What this lock does. A task that asks for anything else is refused: a run
# that silently does something else proves nothing.
ONLY = {
    "FENCEPOST_BACKEND": "redis",
    "FENCEPOST_WAIT": "spin",
    "FENCEPOST_RELEASE": "compare-and-delete",
    "FENCEPOST_FENCE_FLOOR": "none",
    "FENCEPOST_RENEW": "false",
    "FENCEPOST_NESTED": "1",
    "FENCEPOST_READS": "true",
}
CONNECT_SECONDS = 5
ANSWER_SECONDS = 30
AFTER_A_FAILURE_SECONDS = 0.1


class Worker:
    """Acquire, read, work, write, release."""

    def __init__(self, task, harness):
        self.harness = harness
        self.name = task["FENCEPOST_WORKER"]
        self.key = task["FENCEPOST_KEY"]
        # The harness watches keys that begin with `lock:`, unless it names another.
        self.lock_key = task.get("FENCEPOST_LOCK_KEY", f"lock:{self.key}")
        self.ttl = seconds(task, "FENCEPOST_TTL_MS", 2000)
        self.acquire_timeout = seconds(task, "FENCEPOST_ACQUIRE_TIMEOUT_MS", 30000)
        self.work = seconds(task, "FENCEPOST_WORK_MS", 0)
        self.pause = seconds(task, "FENCEPOST_PAUSE_MS", 0)
        self.lasting = seconds(task, "FENCEPOST_FOR_MS", 0)
        self.rounds = float(task.get("FENCEPOST_ROUNDS", "inf" if self.lasting else "1"))
        self.send_token = task.get("FENCEPOST_FENCE", "on") == "on"
        self.resource = Resource(task["FENCEPOST_RESOURCE"], self.key)
        host, port = task["FENCEPOST_ENDPOINTS"].rsplit(":", 1)
        self.redis = redis.Redis(
            host, int(port), socket_connect_timeout=CONNECT_SECONDS, socket_timeout=CONNECT_SECONDS
        )

    def play_all(self):
        # redis-py does not tell a holder that its time is over.
        self.harness.say("ready", lacks=["lost"])
        self.harness.gate("start", 0)
        started_ns, played = raw_monotonic_ns(), 0
        while self.wants_another(played, (raw_monotonic_ns() - started_ns) / 1e9):
            played += 1
            try:
                self.play(played)
            except Failure:
                time.sleep(AFTER_A_FAILURE_SECONDS)
        self.harness.say("done", rounds=played)

    def wants_another(self, played, since_start):
        over = self.lasting and since_start >= self.lasting
        return played < self.rounds and not over

    def play(self, round):
        self.harness.say("acquiring", round=round, key=self.key)
        owner = uuid.uuid4().hex
        times = {"timeout": self.ttl, "blocking_timeout": self.acquire_timeout}
        lock = self.redis.lock(self.lock_key, **times, lock_class=TimedLock)
        with self.telling_of_failures(round):
            token = self.acquire(lock, owner)
        hold = {"round": round, "key": self.key, "token": token}
        valid_until_ns = lock.asked_ns + int(self.ttl * 1e9)
        self.harness.say("acquired", **hold, owner=owner, valid_until_ns=valid_until_ns)
        try:
            self.harness.gate("after_acquire", round)
            with self.telling_of_failures(round):
                self.read_work_write(hold, owner)
        finally:
            self.harness.gate("before_release", round)
            self.harness.say("releasing", **hold)
            with self.telling_of_failures(round):
                outcome = self.release(lock)
            self.harness.say("released", **hold, outcome=outcome)

    @contextlib.contextmanager
    def telling_of_failures(self, round):
        try:
            yield
        except Failure as failure:
            during, error = failure.args
            self.harness.say("failed", round=round, during=during, error=str(error))
            raise

    def acquire(self, lock, owner):
        """The fencing token of a new grant.

        redis-py has none, so we count for ourselves, in a second request. That
        is worth less than a token that comes with the grant: whoever stands
        still between the two requests for longer than the TTL takes its number
        after the next holder has taken one, and the resource then believes the
        late holder and refuses the rightful one.
        """
        try:
            if not lock.acquire(token=owner):
                raise Failure("acquire", f"not granted within {self.acquire_timeout} s")
            # Not `fence:…`: the harness reads a grant's token there, at the moment of the grant.
            return self.redis.incr(f"redis-py-fence:{self.key}")
        except RedisError as error:
            # Whatever was granted all the same ends with its TTL.
            raise Failure("acquire", error) from error

    def read_work_write(self, hold, owner):
        position, count = self.resource.read()
        time.sleep(self.work)
        time.sleep(self.pause)
        body = {"count": count + 1, "by": self.name, "token": hold["token"]}
        body = json.dumps(body).encode()
        body_hash = hashlib.sha256(body).hexdigest()[:16]
        # There is no `lost` to say here, and no FENCEPOST_ON_LOST to keep.
        self.harness.gate("before_write", hold["round"])
        self.harness.say("writing", **hold, owner=owner, body=body_hash)
        headers = {"X-Owner": owner, "X-Based-On": str(position)}
        if self.send_token:
            headers["X-Fence-Token"] = str(hold["token"])
        status, answer = self.resource.write(body, headers)
        if status == 200:
            self.harness.say("write_accepted", **hold, owner=owner, position=answer["position"])
        else:
            refused = {"seen": answer["seen"], "got": answer["got"]}
            self.harness.say(
                "write_rejected", round=hold["round"], key=self.key, owner=owner, **refused
            )

    def release(self, lock):
        try:
            lock.release()
            return "released"
        except LockNotOwnedError:
            # Nothing was freed. Why not has to be asked for, and may have
            # changed since.
            try:
                return "superseded" if lock.locked() else "expired"
            except RedisError:
                return "unknown"
        except (LockError, RedisError) as error:
            # Whether it is free now is unknown.
            raise Failure("release", error) from error


class TimedLock(redis.lock.Lock):
    """Knows when it last asked: no grant lasts longer than its TTL from there."""

    def do_acquire(self, token):
        self.asked_ns = raw_monotonic_ns()
        return super().do_acquire(token)


class Failure(Exception):
    """A step without a usable answer: whether it took effect is unknown."""


class Resource:
    """One key of the protected resource."""

    def __init__(self, url, key):
        self.address = urllib.parse.urlsplit(url)
        self.path = "/r/" + urllib.parse.quote(key, safe="")

    def read(self):
        """The position of the value and the count in it, both 0 where there is none yet."""
        status, answer = self.ask("read", "GET", expected=(200, 404))
        if status == 404:
            return 0, 0
        try:
            return answer["position"], int(json.loads(answer["value"])["count"])
        except (KeyError, TypeError, ValueError):
            return answer["position"], 0

    def write(self, body, headers):
        return self.ask("write", "PUT", body, headers, expected=(200, 409))

    def ask(self, step, method, body=None, headers={}, *, expected):
        address = self.address
        connection = http.client.HTTPConnection(
            address.hostname, address.port, timeout=CONNECT_SECONDS
        )
        try:
            connection.connect()
            connection.sock.settimeout(ANSWER_SECONDS)
            connection.request(method, self.path, body, headers)
            answer = connection.getresponse()
            text = answer.read()
            if answer.status not in expected:
                raise Failure(step, f"{answer.status}: {text.decode(errors='replace')}")
            return answer.status, json.loads(text)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Failure(step, f"{method} {self.path}: {error!r}") from error
        finally:
            connection.close()


class Harness:
    """Events on stdout, gates and questions on stdin."""

    def __init__(self, gates):
        self.stops_at = set(gates)
        self.opened = set()
        self.changed = threading.Condition()
        self.speaking = threading.Lock()
        threading.Thread(target=self.listen, daemon=True).start()

    def say(self, event, **fields):
        with self.speaking:
            # The time is taken under the lock, so that the lines are in its order.
            line = {"at_ns": raw_monotonic_ns(), "event": event, **fields}
            print(json.dumps(line), flush=True)

    def gate(self, gate, round):
        """Waits for the go, which may have come already."""
        if gate in self.stops_at:
            self.say("at_gate", round=round, gate=gate)
            with self.changed:
                self.changed.wait_for(lambda: (gate, round) in self.opened)

    def listen(self):
        for line in sys.stdin:
            try:
                order = json.loads(line)
                if "go" in order:
                    with self.changed:
                        self.opened.add((order["go"], order["round"]))
                        self.changed.notify_all()
                elif order.get("tell") == "clock":
                    # These two are read as everybody reads them, with every skew.
                    realtime_ns, monotonic_ns = time.time_ns(), time.monotonic_ns()
                    self.say("clock", realtime_ns=realtime_ns, monotonic_ns=monotonic_ns)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                print(f"ignored {line!r} on stdin: {error!r}", file=sys.stderr, flush=True)
        # The harness is gone, and so are we, but not in the middle of a line.
        with self.speaking:
            os._exit(0)


class Timespec(ctypes.Structure):
    _fields_ = [("sec", ctypes.c_long), ("nsec", ctypes.c_long)]


LIBC = ctypes.CDLL(None, use_errno=True)
CLOCK_GETTIME = {"x86_64": 228, "aarch64": 113}[platform.machine()]


def raw_monotonic_ns():
    """CLOCK_MONOTONIC by the system call itself.

    time.monotonic_ns() goes through the vDSO, which is what a `skew` patches;
    the times of events must not follow it.
    """
    now = Timespec()
    if LIBC.syscall(CLOCK_GETTIME, time.CLOCK_MONOTONIC, ctypes.byref(now)) != 0:
        raise OSError(ctypes.get_errno(), "clock_gettime")
    return now.sec * 1_000_000_000 + now.nsec


def seconds(task, name, default_ms):
    return int(task.get(name, default_ms)) / 1000


def main():
    # The kernel ignores SIGTERM for pid 1 unless somebody listens.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    for name, only in ONLY.items():
        asked = os.environ.get(name, only)
        if asked != only:
            sys.exit(f"this worker has {name}={only} alone, and not {asked}")
    gates = os.environ.get("FENCEPOST_GATES", "").split(",")
    Worker(os.environ, Harness(gates)).play_all()
    # An ordinary exit would wait for the thread that reads stdin.
    os._exit(0)


if __name__ == "__main__":
    main()
