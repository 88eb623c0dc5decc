//! The bystander: what it tells about a real etcd.

use super::kit::*;
use crate::support::docker_shared;
use fencepost::dlock::{LockProblem, observe_etcd};
use fencepost::model::{LockEvent, LockEventKind, ReleaseOutcome};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn an_observer_sees_the_lock_go_from_hand_to_hand() {
    let Some(_turn) = docker_shared() else { return };
    let (etcd, key) = (etcd().await, unique_key());
    let (locks, _) = locks(LONG);
    // A follower as well as a leader tells everything.
    for member in members() {
        let observer = Observer::start(&member).await;
        let first = locks.acquire(&key, soon()).await.unwrap();
        let (a, t1) = (Some(first.owner().to_owned()), Some(first.fence()));
        let given_up = waiter(&locks, &key);
        until_length(&etcd, &key, 2).await;
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
        let told: Vec<_> = rows
            .into_iter()
            .map(|row| (row.kind, row.owner, row.token))
            .collect();
        assert_eq!(
            told,
            [
                (LockEventKind::Granted, a.clone(), t1),
                (LockEventKind::Released, a, t1),
                (LockEventKind::Granted, b.clone(), t2),
                (LockEventKind::Expired, b, t2),
            ]
        );
    }
}

#[tokio::test]
async fn an_observer_sees_the_servers_own_lock_as_well() {
    let Some(_turn) = docker_shared() else { return };
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

#[tokio::test]
async fn an_observer_misses_nothing_at_full_speed() {
    let Some(_turn) = docker_shared() else { return };
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
    let observed = observe_etcd(NOBODY, "etcd-1", tx, ready_tx, stop).await;
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
        let (tx, mut rx) = mpsc::channel(10);
        let (ready_tx, ready_rx) = oneshot::channel();
        let stop = CancellationToken::new();
        let asked_to_stop = stop.clone();
        let address = address.to_owned();
        let (send_rows, rows) = watch::channel(Vec::new());
        let observing = tokio::spawn(async move {
            let observing = observe_etcd(&address, "etcd-1", tx, ready_tx, asked_to_stop);
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
