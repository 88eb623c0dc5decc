//! Requests whose answers get lost, or that were given up and reach the server afterwards.

use super::kit::*;
use crate::support::{Wire, docker_shared, dynamodb_address, own_dynamodb};
use fencing_lock::{DynamoDbSettings, LockClient, LockMetrics, LockProblem, ReleaseOutcome};
use std::time::Duration;
use tokio::time::Instant;

/// The time after which an answer counts as lost.
const PATIENCE: Duration = Duration::from_secs(1);

fn impatient() -> DynamoDbSettings {
    DynamoDbSettings {
        response_timeout: PATIENCE,
        ..settings()
    }
}

/// A client behind a wire, once the table is there.
async fn behind(wire: &Wire, ttl: Duration) -> (LockClient, LockMetrics) {
    let (locks, metrics) = locks_at(&wire.address, impatient(), ttl);
    let lease = locks.acquire(&unique_key(), soon()).await.unwrap();
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
    (locks, metrics)
}

#[tokio::test]
async fn a_try_whose_answer_was_lost_is_recognised_when_it_is_sent_again() {
    let _turn = docker_shared();
    let wire = Wire::to(dynamodb_address()).await;
    let (locks, metrics) = behind(&wire, LONG).await;
    let key = unique_key();
    let before = metrics.requests.get();
    wire.hold_next_answers(1);
    let from = Instant::now();
    let lease = locks.try_acquire(&key).await.unwrap().expect("granted");
    assert!(from.elapsed() >= PATIENCE, "the first answer was lost");
    assert_eq!(lease.fence().0, 1, "granted once");
    assert_eq!(metrics.requests.get() - before, 2);
    // It counts from before the first of them was sent.
    assert!(lease.deadline() <= from + LONG + SECOND / 2);
    wire.let_go();
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
    assert_eq!(fence(&key).await, 1);
}

#[tokio::test]
async fn a_grant_that_is_recognised_after_its_deadline_is_given_back() {
    let _turn = docker_shared();
    let wire = Wire::to(dynamodb_address()).await;
    let (locks, _) = behind(&wire, SECOND / 2).await;
    let key = unique_key();
    wire.hold_next_answers(1);
    let error = locks.try_acquire(&key).await.unwrap_err();
    assert!(matches!(error.problem, LockProblem::NoAnswer(_)), "{error}");
    assert_eq!(holder(&key).await, None, "the undo has freed it");
    assert_eq!(fence(&key).await, 1, "it was granted at the server");
}

#[tokio::test]
async fn a_release_whose_answer_was_lost_is_still_a_release() {
    let _turn = docker_shared();
    let wire = Wire::to(dynamodb_address()).await;
    let (locks, _) = behind(&wire, LONG).await;
    let key = unique_key();
    let lease = locks.acquire(&key, soon()).await.unwrap();
    wire.hold_next_answers(1);
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
    assert_eq!(holder(&key).await, None);
}

/// All sends of a try are held back, and its undo gets through before them.
#[tokio::test]
async fn a_try_that_comes_after_its_undo_refuses_itself() {
    let _turn = docker_shared();
    for is_new in [true, false] {
        let wire = Wire::to(dynamodb_address()).await;
        let (locks, _) = behind(&wire, LONG).await;
        let key = unique_key();
        if !is_new {
            let lease = locks.acquire(&key, soon()).await.unwrap();
            assert_eq!(lease.release().await, ReleaseOutcome::Released);
        }
        let granted = fence(&key).await;
        wire.hold_next(3);
        let error = locks.try_acquire(&key).await.unwrap_err();
        assert!(matches!(error.problem, LockProblem::NoAnswer(_)), "{error}");
        let undone = record_at(&dynamodb_address(), &key).await;
        let undone = undone.expect("the undo leaves a free item");
        wire.cut();
        wire.until_the_held_ended().await;
        let after = record_at(&dynamodb_address(), &key).await;
        assert_eq!(after, Some(undone), "nothing was carried out later");
        assert_eq!(fence(&key).await, granted, "it drew no token");
    }
}

#[tokio::test]
async fn tries_that_lay_in_a_frozen_server_are_undone() {
    let _turn = docker_shared();
    let server = own_dynamodb();
    let (locks, _) = locks_at(&server.address, impatient(), LONG);
    let lease = locks.acquire(&unique_key(), soon()).await.unwrap();
    lease.release().await;
    let keys: Vec<String> = (0..3).map(|_| unique_key()).collect();
    server.freeze();
    let tries = keys.iter().map(|key| locks.try_acquire(key));
    for tried in futures_util::future::join_all(tries).await {
        tried.unwrap_err();
    }
    server.thaw();
    for key in &keys {
        until_free(&server.address, key).await;
    }
}

/// A watcher that has seen a version takes the holder for dead if it comes back.
#[tokio::test]
async fn a_renewal_that_comes_late_brings_back_no_version() {
    let _turn = docker_shared();
    let wire = Wire::to(dynamodb_address()).await;
    let (locks, _) = behind(&wire, LONG).await;
    let key = unique_key();
    let version = async || {
        let record = record_at(&dynamodb_address(), &key).await;
        record.expect("an item").version
    };
    let lease = locks.acquire(&key, soon()).await.unwrap();
    wire.hold_next(1);
    // Its first send is held, and the second one is answered.
    lease.renew().await.unwrap();
    let seen = version().await;
    lease.renew().await.unwrap();
    let renewed = version().await;
    assert_ne!(renewed, seen);
    wire.cut();
    wire.until_the_held_ended().await;
    let late = version().await;
    assert_ne!(late, renewed, "the first send was carried out at last");
    assert_ne!(late, seen, "and with a version that nobody has seen");
}
