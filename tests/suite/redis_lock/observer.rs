//! The bystander: what it tells about a real Redis.

use super::kit::*;
use crate::support::{docker_shared, redis_address};
use fencepost::dlock::{LockProblem, observe_redis};
use fencepost::model::{LockEvent, LockEventKind, ReleaseOutcome};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{sleep_until, timeout};
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn an_observer_sees_what_the_server_held() {
    let Some(_turn) = docker_shared() else { return };
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
    let told: Vec<_> = rows.iter().map(|row| (row.kind, row.token)).collect();
    assert_eq!(
        told,
        [
            (LockEventKind::Granted, Some(t1)),
            (LockEventKind::Renewed, Some(t1)),
            (LockEventKind::Released, Some(t1)),
            (LockEventKind::Granted, Some(t2)),
            (LockEventKind::Expired, Some(t2)),
            (LockEventKind::Granted, Some(t3)),
            (LockEventKind::Released, Some(t3)),
        ]
    );
    // The first and the last hold were so short that the observer may have
    // asked too late for the owner; but never does it name a wrong one.
    for (row, owner) in rows.iter().zip([&a, &a, &a, &b, &b]) {
        assert!(row.owner.is_none() || row.owner.as_ref() == Some(owner));
    }
    assert_eq!(rows[3].owner, Some(b.clone()));
    assert_eq!(rows[4].owner, Some(b));
}

#[tokio::test]
async fn tokens_that_an_observer_tells_are_right_at_full_speed() {
    let Some(_turn) = docker_shared() else { return };
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
    let seen: Vec<_> = grants.map(|row| (&row.owner, row.token)).collect();
    assert_eq!(seen.len(), granted.len());
    for ((seen_owner, seen_token), (owner, token)) in seen.iter().zip(&granted) {
        assert_eq!(*seen_token, Some(*token));
        assert!(seen_owner.is_none() || seen_owner.as_ref() == Some(owner));
    }
}

#[tokio::test]
async fn an_observer_without_a_server_says_so() {
    let Some(_turn) = docker_shared() else { return };
    let (tx, _rx) = mpsc::channel(1);
    let (ready_tx, ready_rx) = oneshot::channel();
    let stop = CancellationToken::new();
    let error = observe_redis(NOBODY, "redis-1", tx, ready_tx, stop)
        .await
        .unwrap_err();
    assert!(matches!(error.problem, LockProblem::Unreachable(_)));
    assert!(ready_rx.await.is_err());
}

struct Observer {
    stop: CancellationToken,
    rows: JoinHandle<Vec<LockEvent>>,
}

impl Observer {
    async fn start() -> Observer {
        let (tx, mut rx) = mpsc::channel(10);
        let (ready_tx, ready_rx) = oneshot::channel();
        let stop = CancellationToken::new();
        let asked_to_stop = stop.clone();
        let rows = tokio::spawn(async move {
            let address = redis_address();
            let observing = observe_redis(&address, "redis-1", tx, ready_tx, asked_to_stop);
            let collecting = async {
                let mut rows = Vec::new();
                while let Some(row) = rx.recv().await {
                    rows.push(row);
                }
                rows
            };
            let (observed, rows) = tokio::join!(observing, collecting);
            observed.unwrap();
            rows
        });
        timeout(5 * SECOND, ready_rx).await.unwrap().unwrap();
        Observer { stop, rows }
    }

    /// The rows of one key: other tests use the same server.
    async fn stop(self, key: &str) -> Vec<LockEvent> {
        self.stop.cancel();
        let rows = timeout(10 * SECOND, self.rows).await.unwrap().unwrap();
        rows.into_iter().filter(|row| row.key == key).collect()
    }
}
