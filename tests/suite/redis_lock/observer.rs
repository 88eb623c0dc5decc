//! The bystander: what it tells about a real Redis.

use super::kit::*;
use crate::support::{connection_to, docker_shared, own_durable_redis, redis_address};
use fencepost::model::{FencingToken, LockEvent, LockEventKind, WaitPolicy};
use fencepost::services::KeyTemplate;
use fencepost::services::{Backend, Watch};
use fencing_lock::LockProblem;
use fencing_lock::ReleaseOutcome;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn an_observer_sees_what_the_server_held() {
    let _turn = docker_shared();
    let observer = Observer::start().await;
    let key = unique_key();
    let (locks, _) = locks(SECOND);
    let first = locks.acquire(&key, soon()).await.unwrap();
    first.renew().await.unwrap();
    let (a, t1) = (first.owner().to_owned(), first.fence());
    assert_eq!(first.release().await, ReleaseOutcome::Released);
    let second = locks.acquire(&key, soon()).await.unwrap();
    let (b, t2) = (second.owner().to_owned(), second.fence());
    sleep_until(second.deadline() + Duration::from_millis(200)).await;
    assert_eq!(second.release().await, ReleaseOutcome::Expired);
    let third = locks.acquire(&key, soon()).await.unwrap();
    let t3 = third.fence();
    assert_eq!(third.release().await, ReleaseOutcome::Released);
    // What happened before the stop is still told after it.
    let rows = observer.stop(&key).await;
    assert!(rows.is_sorted_by_key(|row| row.at_ns));
    assert!(rows.iter().all(|row| row.node == "redis-1"));
    let told: Vec<_> = rows.iter().map(|row| row.kind).collect();
    assert_eq!(
        told,
        [
            LockEventKind::Granted,
            LockEventKind::Renewed,
            LockEventKind::Released,
            LockEventKind::Granted,
            LockEventKind::Expired,
            LockEventKind::Granted,
            LockEventKind::Released,
        ]
    );
    // The first and the last hold were so short that the observer may have
    // asked too late; but never does it name a wrong owner or token.
    for (row, (owner, token)) in rows.iter().zip([(&a, t1), (&a, t1), (&a, t1)]) {
        assert_not_wrong(row, owner, token);
    }
    for row in &rows[3..5] {
        assert_eq!((row.owner.as_ref(), row.token), (Some(&b), Some(t2)));
    }
    // After the last grant nobody else changed the counter.
    assert_eq!((rows[5].token, rows[6].token), (Some(t3), Some(t3)));
}

#[tokio::test]
async fn an_observer_sees_hand_overs() {
    let _turn = docker_shared();
    for wait in [WaitPolicy::Notify, WaitPolicy::Queue] {
        let observer = Observer::start().await;
        let key = unique_key();
        let (locks, _) = locks_at(&redis_address(), waiting_by(wait), LONG);
        let mut waits = JoinSet::new();
        for _ in 0..5 {
            let (locks, key) = (locks.clone(), key.clone());
            waits.spawn(async move {
                let lease = locks.acquire(&key, soon()).await.unwrap();
                // Long enough for the observer to ask who it is.
                sleep(Duration::from_millis(100)).await;
                let hold = (lease.fence(), lease.owner().to_owned());
                lease.release().await;
                hold
            });
        }
        let mut holds = waits.join_all().await;
        holds.sort();
        let rows = observer.stop(&key).await;
        assert_eq!(rows.len(), 10, "{wait}: {rows:#?}");
        for (pair, (token, owner)) in rows.chunks(2).zip(holds) {
            let kinds = (pair[0].kind, pair[1].kind);
            assert_eq!(kinds, (LockEventKind::Granted, LockEventKind::Released));
            for row in pair {
                let told = (row.token, row.owner.as_ref());
                assert_eq!(told, (Some(token), Some(&owner)), "{wait}");
            }
        }
    }
}

#[tokio::test]
async fn tokens_that_an_observer_tells_are_right_at_full_speed() {
    let _turn = docker_shared();
    let observer = Observer::start().await;
    let key = unique_key();
    let (locks, _) = locks(LONG);
    let mut granted = Vec::new();
    for _ in 0..300 {
        let lease = locks.acquire(&key, soon()).await.unwrap();
        granted.push((lease.owner().to_owned(), lease.fence()));
        lease.release().await;
    }
    let rows = observer.stop(&key).await;
    let grants = rows.iter().filter(|row| row.kind == LockEventKind::Granted);
    let seen: Vec<&LockEvent> = grants.collect();
    assert_eq!(seen.len(), granted.len());
    for (row, (owner, token)) in seen.iter().zip(&granted) {
        assert_not_wrong(row, owner, *token);
    }
    assert_eq!(seen[299].token, Some(granted[299].1), "the last is known");
}

#[tokio::test]
async fn an_observer_sees_the_strings_of_another_library() {
    let _turn = docker_shared();
    let observer = Observer::of(Some("my[locks]:{key}:lock")).await;
    let (key, mut redis) = (unique_key(), redis_connection().await);
    let lock = format!("my[locks]:{key}:lock");
    let ask = |parts: &[&str]| {
        let mut command = redis::cmd(parts[0]);
        command.arg(&parts[1..]);
        command
    };
    let set = |owner: &str| ask(&["SET", &lock, owner, "PX", "60000"]);
    // Each with how much is told by then: the observer has asked who it is.
    for (command, rows) in [
        (set("a"), 1),
        (ask(&["PEXPIRE", &lock, "50000"]), 2),
        (ask(&["UNLINK", &lock]), 3),
        // A key that no template of ours names.
        (
            ask(&["SET", &format!("my-locks:{key}:lock"), "x", "PX", "1000"]),
            3,
        ),
        (set("b"), 4),
        (set("b"), 5),
        (set("c"), 6),
        (ask(&["PEXPIRE", &lock, "1"]), 8),
    ] {
        command.exec_async(&mut redis).await.unwrap();
        observer.has_told(&key, rows).await;
    }
    let rows = observer.stop(&key).await;
    assert!(rows.iter().all(|row| row.token.is_none()), "{rows:#?}");
    assert_eq!(
        owners(&rows),
        [
            (LockEventKind::Granted, "a"),
            (LockEventKind::Renewed, "a"),
            (LockEventKind::Released, "a"),
            (LockEventKind::Granted, "b"),
            (LockEventKind::Renewed, "b"),
            (LockEventKind::Granted, "c"),
            (LockEventKind::Renewed, "c"),
            (LockEventKind::Expired, "c"),
        ]
    );
}

/// As Redisson does it: a field for the holder, with the number of its holds.
#[tokio::test]
async fn an_observer_sees_the_hashes_of_another_library() {
    let _turn = docker_shared();
    let observer = Observer::of(Some("hash-lock-{key}")).await;
    let (key, mut redis) = (unique_key(), redis_connection().await);
    let lock = format!("hash-lock-{key}");
    let script = |text: &str| {
        let mut command = redis::cmd("EVAL");
        command.arg(text).arg(1).arg(&lock).arg("id:7");
        command
    };
    let enter = "redis.call('hincrby', KEYS[1], ARGV[1], 1) redis.call('pexpire', KEYS[1], 60000)";
    let leave =
        "if redis.call('hincrby', KEYS[1], ARGV[1], -1) == 0 then redis.call('del', KEYS[1]) end";
    // One of two holds that is left changes nothing.
    for (text, rows) in [(enter, 1), (enter, 2), (leave, 2), (leave, 3)] {
        script(text).exec_async(&mut redis).await.unwrap();
        observer.has_told(&key, rows).await;
    }
    let rows = observer.stop(&key).await;
    assert_eq!(
        owners(&rows),
        [
            (LockEventKind::Granted, "id:7"),
            (LockEventKind::Renewed, "id:7"),
            (LockEventKind::Released, "id:7"),
        ]
    );
}

/// A server that loads its append-only file reports every command of it as if it came now.
#[tokio::test]
async fn an_observer_does_not_take_what_a_server_loads_for_what_happens() {
    let _turn = docker_shared();
    let server = own_durable_redis();
    let key = unique_key();
    let lock = format!("lock:{{{key}}}");
    let mut redis = connection_to(&server.address).await;
    let mut history = redis::pipe();
    for owner in 0..20_000 {
        let owner = format!("owner-{owner}");
        history
            .cmd("SET")
            .arg(&[&lock, &owner, "PX", "60000"])
            .ignore();
    }
    let slowly = ["SET", "key-load-delay", "50"];
    history.cmd("CONFIG").arg(&slowly).ignore();
    history.exec_async(&mut redis).await.unwrap();
    let mut other = connection_to(&server.address).await;
    other.set_response_timeout(60 * SECOND);
    let loading = tokio::spawn(async move {
        let mut load = redis::cmd("DEBUG");
        load.arg("LOADAOF").exec_async(&mut other).await
    });
    let begun = async { while redis::cmd("PING").exec_async(&mut redis).await.is_ok() {} };
    timeout(10 * SECOND, begun).await.expect("it loads");
    let observer = Observer::at(server.address.clone(), None).await;
    loading.await.unwrap().unwrap();
    let rows = observer.stop(&key).await;
    assert!(rows.is_empty(), "{} rows: {:?}", rows.len(), rows.last());
}

fn owners(rows: &[LockEvent]) -> Vec<(LockEventKind, &str)> {
    let rows = rows.iter();
    rows.map(|row| (row.kind, row.owner.as_deref().unwrap_or("-")))
        .collect()
}

/// What cannot be known is left out.
fn assert_not_wrong(row: &LockEvent, owner: &str, token: FencingToken) {
    assert!(row.owner.is_none() || row.owner.as_deref() == Some(owner));
    assert!(row.token.is_none() || row.token == Some(token));
}

#[tokio::test]
async fn an_observer_without_a_server_says_so() {
    let _turn = docker_shared();
    let (tx, _rx) = mpsc::channel(1);
    let (ready_tx, ready_rx) = oneshot::channel();
    let stop = CancellationToken::new();
    let error = Backend::Redis
        .servers()
        .program
        .observe(Watch {
            address: NOBODY,
            node: "redis-1",
            keys: None,
            events: tx,
            ready: ready_tx,
            stop,
        })
        .await
        .unwrap_err();
    assert!(matches!(error.problem, LockProblem::Unreachable(_)));
    assert!(ready_rx.await.is_err());
}

struct Observer {
    stop: CancellationToken,
    told: watch::Receiver<Vec<LockEvent>>,
    observing: JoinHandle<()>,
}

impl Observer {
    async fn start() -> Observer {
        Observer::of(None).await
    }

    async fn of(keys: Option<&str>) -> Observer {
        Observer::at(redis_address(), keys).await
    }

    async fn at(address: String, keys: Option<&str>) -> Observer {
        let keys = keys.map(|keys| KeyTemplate::parse(keys).unwrap());
        let (tx, mut rx) = mpsc::channel(10);
        let (ready_tx, ready_rx) = oneshot::channel();
        let stop = CancellationToken::new();
        let asked_to_stop = stop.clone();
        let (telling, told) = watch::channel(Vec::new());
        let observing = tokio::spawn(async move {
            let keys = keys.as_ref();
            let observing = Backend::Redis.servers().program.observe(Watch {
                address: &address,
                node: "redis-1",
                keys,
                events: tx,
                ready: ready_tx,
                stop: asked_to_stop,
            });
            let collecting = async {
                while let Some(row) = rx.recv().await {
                    telling.send_modify(|rows: &mut Vec<LockEvent>| rows.push(row));
                }
            };
            let (observed, ()) = tokio::join!(observing, collecting);
            observed.unwrap();
        });
        timeout(5 * SECOND, ready_rx).await.unwrap().unwrap();
        Observer {
            stop,
            told,
            observing,
        }
    }

    /// Returns when so many rows of a key have been told.
    async fn has_told(&self, key: &str, rows: usize) {
        let mut told = self.told.clone();
        let enough = |all: &Vec<LockEvent>| all.iter().filter(|row| row.key == key).count() >= rows;
        let waited = timeout(10 * SECOND, told.wait_for(enough)).await;
        waited.expect("the observer tells it in time").unwrap();
    }

    /// The rows of one key: other tests use the same server.
    async fn stop(self, key: &str) -> Vec<LockEvent> {
        self.stop.cancel();
        timeout(10 * SECOND, self.observing).await.unwrap().unwrap();
        let rows = self.told.borrow();
        rows.iter().filter(|row| row.key == key).cloned().collect()
    }
}
