//! What an observer at a DynamoDB reports.

use super::kit::*;
use crate::support::{docker_shared, dynamodb_address};
use fencepost::model::{LockEvent, LockEventKind};
use fencepost::services::{Backend, Watch};
use fencing_lock::{LockProblem, ReleaseOutcome};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use LockEventKind::{Expired, Granted, Released, Renewed};

#[tokio::test]
async fn a_lease_is_seen_from_its_grant_to_its_end() {
    let _turn = docker_shared();
    let (address, key, stop) = (dynamodb_address(), unique_key(), CancellationToken::new());
    let (events, mut told) = mpsc::channel(1000);
    let (ready, is_ready) = oneshot::channel();
    let observing = tokio::spawn({
        let stop = stop.clone();
        async move {
            let observer = Backend::DynamoDb.servers().program;
            let watch = Watch {
                address: &address,
                node: "dynamodb",
                keys: None,
                events,
                ready,
                stop,
            };
            observer.observe(watch).await
        }
    });
    timeout(10 * SECOND, is_ready).await.unwrap().unwrap();
    let ((brief, _), (locks, _)) = (locks(SECOND), locks(LONG));
    let first = locks.acquire(&key, soon()).await.unwrap();
    first.renew().await.unwrap();
    let owners = [first.owner().to_owned()];
    assert_eq!(first.release().await, ReleaseOutcome::Released);
    let second = brief.acquire(&key, soon()).await.unwrap();
    let third = locks.acquire(&key, soon()).await.unwrap();
    stop.cancel();
    timeout(10 * SECOND, observing)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    let mut rows: Vec<LockEvent> = Vec::new();
    while let Some(row) = told.recv().await {
        rows.push(row);
    }
    // Other tests use the same server.
    rows.retain(|row| row.key == key);
    let rows = rows.iter().map(|row| {
        let token = row.token.map_or(0, |token| token.0);
        (row.kind, row.owner.as_deref().unwrap_or("-"), token)
    });
    let rows: Vec<_> = rows.collect();
    let owners = [owners[0].as_str(), second.owner(), third.owner()];
    let expected = [
        (Granted, owners[0], 1),
        (Renewed, owners[0], 1),
        (Released, owners[0], 1),
        (Granted, owners[1], 2),
        (Expired, owners[1], 2),
        (Granted, owners[2], 3),
    ];
    assert_eq!(rows, expected);
}

#[tokio::test]
async fn an_observer_without_a_server_says_so() {
    let (events, _told) = mpsc::channel(1);
    let (ready, is_ready) = oneshot::channel();
    let observed = Backend::DynamoDb.servers().program.observe(Watch {
        address: NOBODY,
        node: "dynamodb",
        keys: None,
        events,
        ready,
        stop: CancellationToken::new(),
    });
    let error = observed.await.unwrap_err();
    assert!(matches!(error.problem, LockProblem::Unreachable(_)));
    assert!(is_ready.await.is_err());
}
