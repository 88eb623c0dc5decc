"""redis-py's own Lock, as its users use it, on fencepost's kit for Python."""

import fencepost_kit
import redis
import redis.lock
from redis.exceptions import LockNotOwnedError, RedisError


class RedisPyLock(fencepost_kit.Lock):
    def __init__(self, task):
        super().__init__(task)
        host, port = task.endpoints[0].rsplit(":", 1)
        self.redis = redis.Redis(host, int(port), socket_connect_timeout=5, socket_timeout=5)

    def acquire(self, owner, timeout):
        """redis-py has no token, so this counts for itself, in a second request; the README says what that is worth."""
        # redis-py waits by itself, and asks many times.
        asking = type("Asking", (AskingLock,), {"asking": self.asking})
        times = {"timeout": self.task.ttl, "blocking_timeout": timeout}
        self.lock = self.redis.lock(self.task.lock_key, **times, lock_class=asking)
        if not self.lock.acquire(token=owner):
            return None
        # Not `fence:…`: the harness reads a grant's token there, at the moment of the grant.
        return self.redis.incr(f"redis-py-fence:{self.task.key}")

    def release(self):
        try:
            self.lock.release()
        except LockNotOwnedError:
            # Nothing was freed. Why not has to be asked for, and may have changed since.
            try:
                return "superseded" if self.lock.locked() else "expired"
            except RedisError:
                return "unknown"


class AskingLock(redis.lock.Lock):
    def do_acquire(self, token):
        self.asking()
        return super().do_acquire(token)


if __name__ == "__main__":
    fencepost_kit.run(RedisPyLock, only={"FENCEPOST_BACKEND": ["redis"]})
