//! The bystander: what it tells about a real etcd.

use super::kit::*;
use crate::support::docker_shared;
use etcd_client::{KeyValue, PutOptions};
use fencepost::model::{FencingToken, LockEvent, LockEventKind};
use fencepost::services::KeyTemplate;
use fencepost::services::{Backend, Watch};
use fencing_lock::LockProblem;
use fencing_lock::ReleaseOutcome;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn an_observer_sees_the_lock_go_from_hand_to_hand() {
    let _turn = docker_shared();
    let (etcd, key) = (etcd().await, unique_key());
    let (locks, _) = locks(LONG);
    // A follower as well as a leader tells everything.
    for member in members() {
        let observer = Observer::start(&member).await;
        let first = locks.acquire(&key, soon()).await.unwrap();
        let (a, t1) = (Some(first.owner().to_owned()), Some(first.fence()));
        let given_up = waiter(&locks, &key);
        until_length(&etcd, &key, 2).await;
        let quitter = place_in(&line(&etcd, &key).await, 1);
        let second = waiter(&locks, &key);
        until_length(&etcd, &key, 3).await;
        given_up.abort();
        until_length(&etcd, &key, 2).await;
        assert_eq!(first.release().await, ReleaseOutcome::Released);
        let second = second.await.unwrap();
        let (b, t2) = (Some(second.owner().to_owned()), Some(second.fence()));
        // It asks for the lease when it sees the release, so that one has to
        // live until then.
        observer.until_told(&key, LockEventKind::Released).await;
        let session = line(&etcd, &key).await[0].lease();
        etcd.lease_client().revoke(session).await.unwrap();
        // What happened before the stop is still told after it.
        let rows = observer.stop(&key).await;
        assert!(rows.is_sorted_by_key(|row| row.at_ns));
        assert!(rows.iter().all(|row| row.node == "etcd-1"));
        assert_eq!(
            told(rows),
            [
                (LockEventKind::Granted, a.clone(), t1),
                (LockEventKind::Queued, quitter.0.clone(), quitter.1),
                (LockEventKind::Queued, b.clone(), t2),
                (LockEventKind::Left, quitter.0, quitter.1),
                (LockEventKind::Released, a, t1),
                (LockEventKind::Granted, b.clone(), t2),
                (LockEventKind::Expired, b, t2),
            ]
        );
    }
}

fn told(rows: Vec<LockEvent>) -> Vec<(LockEventKind, Option<String>, Option<FencingToken>)> {
    let rows = rows.into_iter();
    rows.map(|row| (row.kind, row.owner, row.token)).collect()
}

/// Owner and token of whoever stands there.
fn place_in(line: &[KeyValue], index: usize) -> (Option<String>, Option<FencingToken>) {
    let owner = line[index].value_str().unwrap().to_owned();
    let token = line[index].create_revision().unsigned_abs();
    (Some(owner), Some(FencingToken(token)))
}

#[tokio::test]
async fn an_observer_sees_the_servers_own_lock_as_well() {
    let _turn = docker_shared();
    let key = unique_key();
    let observer = Observer::start(&members()[0]).await;
    let (locks, _) = locks_of(api_backend(), LONG);
    let lease = locks.acquire(&key, soon()).await.unwrap();
    let token = Some(lease.fence());
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
    let rows = observer.stop(&key).await;
    let told: Vec<_> = rows.iter().map(|row| (row.kind, row.token)).collect();
    // Its release is the end of its lease.
    assert_eq!(
        told,
        [
            (LockEventKind::Granted, token),
            (LockEventKind::Expired, token)
        ]
    );
}

/// As python-etcd3 does it: one key with a lease, and bytes that are no text.
#[tokio::test]
async fn an_observer_sees_the_key_of_another_library() {
    let _turn = docker_shared();
    let (etcd, key) = (etcd().await, unique_key());
    let observer = Observer::of(&members()[0], Some("/theirs/{key}")).await;
    let lock = format!("/theirs/{key}");
    let (mut kv, mut leases) = (etcd.kv_client(), etcd.lease_client());
    let mut tokens = Vec::new();
    for owner in [&b"holder"[..], b"\xff\x01"] {
        let lease = leases.grant(60, None).await.unwrap().id();
        let attached = PutOptions::new().with_lease(lease);
        kv.put(lock.as_str(), owner, Some(attached)).await.unwrap();
        let held = kv.get(lock.as_str(), None).await.unwrap();
        let revision = held.kvs()[0].create_revision();
        tokens.push(Some(FencingToken(revision.unsigned_abs())));
        if owner == b"holder" {
            kv.delete(lock.as_str(), None).await.unwrap();
            observer.until_told(&key, LockEventKind::Released).await;
        }
        leases.revoke(lease).await.unwrap();
    }
    let rows = observer.stop(&key).await;
    let owner = |name: &str| Some(name.to_owned());
    assert_eq!(
        told(rows),
        [
            (LockEventKind::Granted, owner("holder"), tokens[0]),
            (LockEventKind::Released, owner("holder"), tokens[0]),
            (LockEventKind::Granted, owner("ff01"), tokens[1]),
            (LockEventKind::Expired, owner("ff01"), tokens[1]),
        ]
    );
}

/// As etcd's own clients do it: places below the lock's name.
#[tokio::test]
async fn an_observer_sees_the_line_of_another_library() {
    let _turn = docker_shared();
    let (etcd, key) = (etcd().await, unique_key());
    let observer = Observer::of(&members()[0], Some("/lines/{key}")).await;
    let mut kv = etcd.kv_client();
    let place = |name: &str| format!("/lines/{key}/{name}");
    for name in ["a", "b", "c"] {
        kv.put(place(name), name, None).await.unwrap();
    }
    for name in ["b", "a", "c"] {
        kv.delete(place(name), None).await.unwrap();
    }
    let rows = told(observer.stop(&key).await);
    let rows: Vec<_> = rows
        .iter()
        .map(|(kind, owner, _)| (*kind, owner.as_deref().unwrap_or("-")))
        .collect();
    assert_eq!(
        rows,
        [
            (LockEventKind::Granted, "a"),
            (LockEventKind::Queued, "b"),
            (LockEventKind::Queued, "c"),
            (LockEventKind::Left, "b"),
            (LockEventKind::Released, "a"),
            (LockEventKind::Granted, "c"),
            (LockEventKind::Released, "c"),
        ]
    );
}

#[tokio::test]
async fn an_observer_misses_nothing_at_full_speed() {
    let _turn = docker_shared();
    let key = unique_key();
    let observer = Observer::start(&members()[0]).await;
    let (locks, _) = locks(LONG);
    let mut granted = Vec::new();
    for _ in 0..200 {
        let lease = locks.acquire(&key, soon()).await.unwrap();
        granted.push((Some(lease.owner().to_owned()), Some(lease.fence())));
        lease.release().await;
    }
    let rows = observer.stop(&key).await;
    assert_eq!(rows.len(), 2 * granted.len());
    for (pair, (owner, token)) in rows.chunks(2).zip(granted) {
        assert_eq!(pair[0].kind, LockEventKind::Granted);
        assert_eq!(pair[1].kind, LockEventKind::Released);
        assert!(pair.iter().all(|row| row.owner == owner));
        assert!(pair.iter().all(|row| row.token == token));
    }
}

#[tokio::test]
async fn an_observer_without_a_server_says_so() {
    let (tx, _rx) = mpsc::channel(1);
    let (ready_tx, ready_rx) = oneshot::channel();
    let stop = CancellationToken::new();
    let observed = Backend::Etcd
        .servers()
        .program
        .observe(Watch {
            address: NOBODY,
            node: "etcd-1",
            keys: None,
            events: tx,
            ready: ready_tx,
            stop,
        })
        .await;
    let error = observed.unwrap_err();
    let is_right = matches!(error.problem, LockProblem::Unreachable(_));
    assert!(is_right, "{error}");
    assert!(ready_rx.await.is_err());
}

struct Observer {
    stop: CancellationToken,
    rows: watch::Receiver<Vec<LockEvent>>,
    observing: JoinHandle<()>,
}

impl Observer {
    async fn start(address: &str) -> Observer {
        Observer::of(address, None).await
    }

    async fn of(address: &str, keys: Option<&str>) -> Observer {
        let keys = keys.map(|keys| KeyTemplate::parse(keys).unwrap());
        let (tx, mut rx) = mpsc::channel(10);
        let (ready_tx, ready_rx) = oneshot::channel();
        let stop = CancellationToken::new();
        let asked_to_stop = stop.clone();
        let address = address.to_owned();
        let (send_rows, rows) = watch::channel(Vec::new());
        let observing = tokio::spawn(async move {
            let keys = keys.as_ref();
            let observing = Backend::Etcd.servers().program.observe(Watch {
                address: &address,
                node: "etcd-1",
                keys,
                events: tx,
                ready: ready_tx,
                stop: asked_to_stop,
            });
            let collecting = async {
                while let Some(row) = rx.recv().await {
                    send_rows.send_modify(|rows: &mut Vec<LockEvent>| rows.push(row));
                }
            };
            let (observed, ()) = tokio::join!(observing, collecting);
            observed.unwrap();
        });
        let version = timeout(5 * SECOND, ready_rx).await.unwrap().unwrap();
        assert!(version.starts_with("3.5."), "{version}");
        Observer {
            stop,
            rows,
            observing,
        }
    }

    async fn until_told(&self, key: &str, kind: LockEventKind) {
        let mut rows = self.rows.clone();
        let is_it = |row: &LockEvent| row.key == key && row.kind == kind;
        let told = rows.wait_for(|rows| rows.iter().any(is_it));
        let told = timeout(10 * SECOND, told).await;
        assert!(matches!(told, Ok(Ok(_))), "no {kind:?} of {key}");
    }

    /// The rows of one key: other tests use the same cluster.
    async fn stop(self, key: &str) -> Vec<LockEvent> {
        self.stop.cancel();
        timeout(10 * SECOND, self.observing).await.unwrap().unwrap();
        let rows = self.rows.borrow();
        rows.iter().filter(|row| row.key == key).cloned().collect()
    }
}
