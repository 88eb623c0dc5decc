"""A lock on one Redis, by hand: what the kit leaves to you."""

import socket

import fencepost_kit

ACQUIRE = "if redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[2]) then return redis.call('incr',KEYS[2]) end return 0"
RELEASE = "local o=redis.call('get',KEYS[1]) if o==ARGV[1] then redis.call('del',KEYS[1]) return 0 end return o and 2 or 1"
RENEW = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) end return 0"
HELD = "return redis.call('get',KEYS[1])==ARGV[1] and 1 or 0"


class RedisLock(fencepost_kit.Lock):
    def acquire(self, owner, timeout):
        self.owner = owner
        return self.eval(ACQUIRE) or None

    def release(self):
        return ["released", "expired", "superseded"][self.eval(RELEASE)]

    def renew(self):
        return self.eval(RENEW) == 1

    def held(self):
        return self.eval(HELD) == 1

    def eval(self, script):
        """EVAL of a script that answers with a number."""
        keys = [self.task.lock_key, "fence:" + self.task.key]
        words = ["EVAL", script, "2", *keys, self.owner, str(int(self.task.ttl * 1000))]
        request = f"*{len(words)}\r\n" + "".join(f"${len(word.encode())}\r\n{word}\r\n" for word in words)
        host, port = self.task.endpoints[0].rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=5) as redis:
            redis.sendall(request.encode())
            answer = redis.makefile().readline()
        if not answer.startswith(":"):
            raise OSError(f"Redis answers {answer!r}")
        return int(answer[1:])


if __name__ == "__main__":
    fencepost_kit.run(RedisLock, only={"FENCEPOST_BACKEND": ["redis"]})
