"""A fencepost worker in Python 3.8 or newer, without dependencies: copy this file beside your lock.

    import fencepost_kit

    class Lock(fencepost_kit.Lock):
        def acquire(self, owner, timeout): ...   # a token, True without tokens, None: not now
        def release(self): ...                   # None, or an outcome: expired, superseded, unknown
        def renew(self): ...                     # optional: False if the lock is not ours any more
        def held(self): ...                      # optional: am I still the holder?

    fencepost_kit.run(Lock, only={"FENCEPOST_BACKEND": ["redis"]})

Whatever raises is reported as a failed step. `self.task` has key, lock_key, ttl (in seconds),
endpoints, backend and worker. The protocol is in docs/contract.md of fencepost.
"""

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
import types
import urllib.parse
import uuid

CONNECT_SECONDS = 5
ANSWER_SECONDS = 30
AFTER_A_FAILURE_SECONDS = 0.1
BETWEEN_TRIES_SECONDS = 0.05
# What this kit does; `only` of run() is laid over it.
ONLY = {
    "FENCEPOST_WAIT": ["spin"],
    "FENCEPOST_RELEASE": ["compare-and-delete"],
    "FENCEPOST_FENCE_FLOOR": ["none"],
    "FENCEPOST_NESTED": ["1"],
}


class Lock:
    """The base of your lock; one object plays all rounds of a worker."""

    tokens = True  # False: this lock has no fencing token
    renew = None
    held = None

    def __init__(self, task):
        self.task = task

    def asking(self):
        """Notes that a request for the lock is about to be sent: no grant lasts longer than its
        TTL from here. Call it before each request if your acquire waits by itself."""
        self.asked_ns = now_ns()


def run(lock_class, only=None):
    """Plays the task in the environment, and ends the process."""
    # The kernel ignores SIGTERM for pid 1 unless somebody listens.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    env = os.environ
    can = dict(ONLY)
    if lock_class.renew is None:
        can["FENCEPOST_RENEW"] = ["false"]
    can.update(only or {})
    console = Console(env.get("FENCEPOST_GATES", "").split(","))
    for name, values in can.items():
        if env.get(name, values[0]) not in values:
            refuse(console, f"this worker has {name}={' or '.join(values)} alone, and not {env[name]}")
    if not env["FENCEPOST_RESOURCE"].startswith("http:"):
        refuse(console, "this worker writes to an HTTP resource alone")
    lacks = [] if lock_class.tokens else ["token"]
    if lock_class.held is None and lock_class.renew is None:
        lacks.append("lost")
    Worker(env, lock_class, console).play_all(lacks, can)
    # An ordinary exit would wait for the thread that reads stdin.
    os._exit(0)


def refuse(console, reason):
    console.say("refused", reason=reason)
    os._exit(0)


class Worker:
    def __init__(self, env, lock_class, console):
        number = lambda name, default: int(env.get("FENCEPOST_" + name, default))
        self.console = console
        self.name = env.get("FENCEPOST_WORKER", "worker")
        self.key = env.get("FENCEPOST_KEY", "account-42")
        self.ttl = number("TTL_MS", 2000) / 1000
        self.acquire_timeout = number("ACQUIRE_TIMEOUT_MS", 30000) / 1000
        self.work, self.pause = number("WORK_MS", 50) / 1000, number("PAUSE_MS", 0) / 1000
        self.lasting_ns = number("FOR_MS", 0) * 1_000_000
        self.rounds = float(env.get("FENCEPOST_ROUNDS", "inf" if self.lasting_ns else "1"))
        self.sends_token = env.get("FENCEPOST_FENCE", "on") == "on"
        self.reads = env.get("FENCEPOST_READS", "true") == "true"
        self.renews = env.get("FENCEPOST_RENEW", "false") == "true"
        self.stops = env.get("FENCEPOST_ON_LOST", "stop") == "stop"
        self.resource = Resource(env["FENCEPOST_RESOURCE"], self.key)
        self.lock = lock_class(types.SimpleNamespace(
            key=self.key,
            lock_key=env.get("FENCEPOST_LOCK_KEY", "lock:" + self.key),
            ttl=self.ttl,
            endpoints=env["FENCEPOST_ENDPOINTS"].split(","),
            backend=env.get("FENCEPOST_BACKEND", "redis"),
            worker=self.name,
        ))

    def play_all(self, lacks, only):
        self.console.say("ready", lacks=lacks, only=only)
        self.console.gate("start", 0)
        started_ns, played = now_ns(), 0
        while played < self.rounds and not (self.lasting_ns and now_ns() - started_ns >= self.lasting_ns):
            played += 1
            try:
                self.play(played)
            except Failure:
                time.sleep(AFTER_A_FAILURE_SECONDS)
        self.console.say("done", rounds=played)

    def play(self, round):
        self.console.say("acquiring", round=round, key=self.key)
        owner = uuid.uuid4().hex
        with Step(self.console, round, "acquire"):
            token = self.acquire(owner)
        hold = {"round": round, "key": self.key}
        if self.lock.tokens:
            hold["token"] = token
        until_ns = self.lock.asked_ns + int(self.ttl * 1e9)
        self.console.say("acquired", **hold, owner=owner, valid_until_ns=until_ns)
        watchdog = Watchdog(self, hold)
        try:
            self.console.gate("after_acquire", round)
            self.read_work_write(round, hold, owner, watchdog)
        finally:
            self.console.gate("before_release", round)
            watchdog.end()
            self.console.say("releasing", **hold)
            with Step(self.console, round, "release"):
                outcome = self.lock.release()
            self.console.say("released", **hold, outcome=outcome or "released")

    def acquire(self, owner):
        deadline = time.monotonic() + self.acquire_timeout
        while True:
            self.lock.asking()
            token = self.lock.acquire(owner, max(deadline - time.monotonic(), 0))
            if token:
                return token
            if time.monotonic() >= deadline:
                raise TimeoutError(f"not granted within {self.acquire_timeout} s")
            time.sleep(BETWEEN_TRIES_SECONDS)

    def read_work_write(self, round, hold, owner, watchdog):
        position, count = None, 0
        if self.reads:
            with Step(self.console, round, "read"):
                position, count = self.resource.read()
        watchdog.work(self.work)
        with watchdog.world:
            # Stops the watchdog as well, as a garbage collector would.
            time.sleep(self.pause)
        if watchdog.is_lost():
            self.console.say("lost", **hold, reason=watchdog.reason)
            if self.stops:
                return
        body = json.dumps({"count": count + 1, "by": self.name, "token": hold.get("token")}).encode()
        headers = {"X-Owner": owner}
        if position is not None:
            headers["X-Based-On"] = str(position)
        if "token" in hold and self.sends_token:
            headers["X-Fence-Token"] = str(hold["token"])
        # After the last look: what happens at this gate, no lock can see.
        self.console.gate("before_write", round)
        self.console.say("writing", **hold, owner=owner, body=hashlib.sha256(body).hexdigest()[:16])
        with Step(self.console, round, "write"):
            status, answer = self.resource.write(body, headers)
        if status == 200:
            self.console.say("write_accepted", **hold, owner=owner, position=answer["position"])
        else:
            refused = {"seen": answer["seen"], "got": answer["got"]}
            self.console.say("write_rejected", round=round, key=self.key, owner=owner, **refused)


class Failure(Exception):
    """A step without a usable answer, which has been reported."""


class Step:
    """Reports whatever a step raises."""

    def __init__(self, console, round, during):
        self.console, self.round, self.during = console, round, during

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _):
        if error is not None and isinstance(error, Exception):
            text = f"{kind.__name__}: {error}"
            self.console.say("failed", round=self.round, during=self.during, error=text)
            raise Failure() from error


class Watchdog:
    """Renews at a third of the TTL if the task says so, and knows whether the lock is lost."""

    def __init__(self, worker, hold):
        self.lock, self.ttl, self.console, self.hold = worker.lock, worker.ttl, worker.console, hold
        self.reason = None
        self.world = threading.Lock()
        self.belief = threading.Lock()
        self.ended = threading.Event()
        self.stops = worker.stops
        self.thread = threading.Thread(target=self.renew_all, daemon=True) if worker.renews else None
        if self.thread:
            self.thread.start()

    def renew_all(self):
        while not self.ended.wait(self.ttl / 3) and self.reason is None:
            with self.world:
                asked_ns = now_ns()
                try:
                    is_ours = self.lock.renew()
                except Exception as error:  # Whether it took effect is unknown: try again.
                    print(f"renew: {error!r}", file=sys.stderr, flush=True)
                    continue
                with self.belief:
                    if is_ours is False:
                        self.reason = self.reason or "the renewal was refused"
                    elif self.reason is None and not self.ended.is_set():
                        until_ns = asked_ns + int(self.ttl * 1e9)
                        self.console.say("renewed", **self.hold, valid_until_ns=until_ns)

    def is_lost(self):
        if self.reason is None and self.lock.held is not None:
            reason = None
            try:
                if not self.lock.held():
                    reason = "the lock is not ours any more"
            except Exception as error:
                reason = f"the lock cannot be looked at: {error!r}"
            with self.belief:
                # No renewal is told once the lock was found lost.
                self.reason = self.reason or reason
        return self.reason is not None

    def work(self, seconds):
        """Works, and stops early once the lock is lost."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not (self.stops and self.is_lost()):
            time.sleep(min(max(end - time.monotonic(), 0), self.ttl / 4))

    def end(self):
        self.ended.set()
        if self.thread:
            # A renewal under way would come after the release.
            self.thread.join()


class Resource:
    """One key of the protected resource; each request has a connection of its own."""

    def __init__(self, url, key):
        self.address = urllib.parse.urlsplit(url)
        self.path = "/r/" + urllib.parse.quote(key, safe="")

    def read(self):
        """The position of the value and the count in it, both 0 where there is none yet."""
        status, answer = self.ask("GET", None, {}, (200, 404))
        if status == 404:
            return 0, 0
        try:
            return answer["position"], int(json.loads(answer["value"])["count"])
        except (KeyError, TypeError, ValueError):
            return answer["position"], 0

    def write(self, body, headers):
        return self.ask("PUT", body, headers, (200, 409))

    def ask(self, method, body, headers, expected):
        address = self.address
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=CONNECT_SECONDS)
        try:
            connection.connect()
            connection.sock.settimeout(ANSWER_SECONDS)
            connection.request(method, self.path, body, headers)
            answer = connection.getresponse()
            text = answer.read()
            if answer.status not in expected:
                raise OSError(f"{answer.status}: {text.decode(errors='replace')}")
            return answer.status, json.loads(text)
        finally:
            connection.close()


class Console:
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
            print(json.dumps({"at_ns": now_ns(), "event": event, **fields}), flush=True)

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
                    self.say("clock", realtime_ns=time.time_ns(), monotonic_ns=time.monotonic_ns())
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                print(f"ignored {line!r} on stdin: {error!r}", file=sys.stderr, flush=True)
        # The harness is gone, and so are we, but not in the middle of a line.
        with self.speaking:
            os._exit(0)


class Timespec(ctypes.Structure):
    _fields_ = [("sec", ctypes.c_long), ("nsec", ctypes.c_long)]


LIBC = ctypes.CDLL(None, use_errno=True)
CLOCK_GETTIME = {"x86_64": 228, "aarch64": 113}[platform.machine()]


def now_ns():
    """CLOCK_MONOTONIC by the system call itself: time.monotonic_ns() goes through the vDSO, which a
    `skew` patches, and the times of events must not follow it."""
    now = Timespec()
    if LIBC.syscall(CLOCK_GETTIME, time.CLOCK_MONOTONIC, ctypes.byref(now)) != 0:
        raise OSError(ctypes.get_errno(), "clock_gettime")
    return now.sec * 1_000_000_000 + now.nsec
