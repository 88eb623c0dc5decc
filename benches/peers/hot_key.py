"""How often other people's locks change hands on one hot key, at servers that run already.

    pip install kazoo sqlalchemy-dlock 'tooz[postgresql,mysql]' 'psycopg[binary]' psycopg2-binary PyMySQL
    python hot_key.py kazoo HOST:PORT --contenders 50 --seconds 10

Each contender is a thread with a connection or session of its own. It gets the lock, lets it go,
and wants it again; nobody works or writes meanwhile. Fencepost does the same with
`contend --closed`, in which each holder also writes to the resource.
"""

import argparse
import logging
import threading
import time

KEY = "hot-key"


def kazoo(address):
    from kazoo.client import KazooClient

    client = KazooClient(hosts=address)
    client.start()
    lock = client.Lock("/peers/" + KEY)
    return lock.acquire, lock.release


def dlock(url):
    from sqlalchemy import create_engine
    from sqlalchemy.pool import NullPool
    from sqlalchemy_dlock import create_sadlock

    lock = create_sadlock(create_engine(url, poolclass=NullPool).connect(), KEY)
    # MariaDB takes no wait without an end.
    return lambda: lock.acquire(timeout=60), lock.release


def tooz(url):
    import uuid

    from tooz import coordination

    coordinator = coordination.get_coordinator(url, uuid.uuid4().hex.encode())
    coordinator.start()
    lock = coordinator.get_lock(KEY.encode())
    return lock.acquire, lock.release


PEERS = {
    "kazoo": kazoo,
    "tooz-zookeeper": lambda at: tooz(f"kazoo://{at}"),
    "dlock-postgres": lambda at: dlock(f"postgresql+psycopg://postgres@{at}/postgres"),
    "tooz-postgres": lambda at: tooz(f"postgresql://postgres@{at}/postgres"),
    "dlock-mariadb": lambda at: dlock(f"mysql+pymysql://fencing_lock@{at}/fencing_lock"),
    "tooz-mariadb": lambda at: tooz(f"mysql://fencing_lock@{at}/fencing_lock"),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("address")
    parser.add_argument("--contenders", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=10)
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    ready = threading.Barrier(given.contenders + 1, timeout=120)
    over = threading.Event()
    held = threading.Lock()
    # When it was granted, to whom, and since when that one waited.
    grants, troubles = [], []

    def contend(number):
        try:
            acquire, release = PEERS[given.peer](given.address)
            ready.wait()
            while not over.is_set():
                since = time.monotonic()
                acquire()
                if over.is_set():
                    break
                assert held.acquire(blocking=False), "two held the lock at once"
                grants.append((time.monotonic(), number, since))
                held.release()
                release()
        except Exception as error:
            troubles.append(f"{type(error).__name__}: {error}")
            over.set()

    for number in range(given.contenders):
        threading.Thread(target=contend, args=(number,), daemon=True).start()
    ready.wait()
    over.wait(3)  # All came at once, in no order.
    begin = time.monotonic()
    over.wait(given.seconds)
    end = time.monotonic()
    if troubles:
        raise SystemExit(f"{given.peer}: {troubles[0]}")
    over.set()
    counted = [grant for grant in list(grants) if begin <= grant[0] <= end]
    waits = sorted(at - since for at, _, since in counted)
    passed = sum(
        any(later[2] < since and later[0] > at for later in counted[n + 1 : n + 200])
        for n, (at, _, since) in enumerate(counted)
    )
    print(
        f"{given.peer}: {len(counted) / (end - begin):.0f} hand-offs/s with {given.contenders},"
        f" {100 * passed / max(len(counted), 1):.1f} % out of order,"
        f" p50 {1000 * waits[len(waits) // 2]:.1f} ms" if waits else f"{given.peer}: no grants"
    )


main()
