//! What an observer at a Consul reports.

use super::kit::*;
use crate::support::{consul_address, docker_shared};
use fencepost::model::{LockEvent, LockEventKind};
use fencepost::services::{Backend, Watch};
use fencing_lock::{LockProblem, ReleaseOutcome};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use LockEventKind::{Expired, Granted, Released};

#[tokio::test]
async fn a_lock_is_seen_from_its_grant_to_its_end() {
    let _turn = docker_shared();
    let (tx, mut rows) = mpsc::channel(10);
    let (ready, is_ready) = oneshot::channel();
    let stop = CancellationToken::new();
    let asked_to_stop = stop.clone();
    let observing = tokio::spawn(async move {
        let address = consul_address();
        let observed = Backend::Consul.servers().program.observe(Watch {
            address: &address,
            node: "consul",
            keys: None,
            events: tx,
            ready,
            stop: asked_to_stop,
        });
        observed.await
    });
    let version = timeout(10 * SECOND, is_ready).await.unwrap().unwrap();
    assert!(version.starts_with("1.8."), "{version}");
    let ((locks, _), consul, key) = (locks(LONG), consul(), unique_key());
    let mut expected = Vec::new();
    for end in [Released, Expired] {
        let lease = locks.acquire(&key, soon()).await.unwrap();
        let whose = (lease.owner().to_owned(), lease.fence().0);
        await_row(&mut rows, &key, Granted, &whose).await;
        match end {
            Released => assert_eq!(lease.release().await, ReleaseOutcome::Released),
            _ => consul.end_session_of(&key).await,
        }
        await_row(&mut rows, &key, end, &whose).await;
        expected.push(whose);
    }
    assert!(expected[0].1 < expected[1].1);
    // What happened just before the stop is still told.
    let last = locks.acquire(&key, soon()).await.unwrap();
    stop.cancel();
    let whose = (last.owner().to_owned(), last.fence().0);
    await_row(&mut rows, &key, Granted, &whose).await;
    while rows.recv().await.is_some() {}
    timeout(10 * SECOND, observing)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
}

/// The next row of this key has to be this one: other tests use the same server.
async fn await_row(
    rows: &mut mpsc::Receiver<LockEvent>,
    key: &str,
    kind: LockEventKind,
    whose: &(String, u64),
) {
    loop {
        let row = timeout(10 * SECOND, rows.recv()).await;
        let row = row.expect("in time").expect("a row");
        if row.key != key {
            continue;
        }
        let owner = row.owner.as_deref();
        let token = row.token.map(|token| token.0);
        let told = (row.kind, owner, token);
        assert_eq!(told, (kind, Some(whose.0.as_str()), Some(whose.1)));
        return;
    }
}

#[tokio::test]
async fn an_observer_without_a_server_says_so() {
    let (tx, _rx) = mpsc::channel(1);
    let (ready, is_ready) = oneshot::channel();
    let observed = Backend::Consul.servers().program.observe(Watch {
        address: NOBODY,
        node: "consul",
        keys: None,
        events: tx,
        ready,
        stop: CancellationToken::new(),
    });
    let error = observed.await.unwrap_err();
    assert!(matches!(error.problem, LockProblem::Unreachable(_)));
    assert!(is_ready.await.is_err());
}
