//! Waiting while the connection breaks or the server goes away.

use super::kit::*;
use crate::support::{connection_to, docker_shared, own_redis};
use fencepost::model::{FencingToken, WaitPolicy};
use fencing_lock::ReleaseOutcome;
use fencing_lock::{LockClient, LockError, LockProblem};
use redis::aio::MultiplexedConnection;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

const WAITERS: usize = 20;

#[tokio::test]
async fn waiters_get_through_after_their_connection_was_killed() {
    let _turn = docker_shared();
    let server = own_redis();
    let mut redis = connection_to(&server.address).await;
    for wait in WaitPolicy::ALL {
        let key = unique_key();
        let (holding, _) = locks_at(&server.address, waiting_by(wait), LONG);
        let held = holding.acquire(&key, soon()).await.unwrap();
        let (locks, _) = locks_at(&server.address, waiting_by(wait), LONG);
        let waiters = wait_for(&locks, &key, Instant::now() + 20 * SECOND);
        until_they_wait(&mut redis, wait, &key).await;
        kill_all_others(&mut redis).await;
        until_answered(&holding).await;
        assert_eq!(held.release().await, ReleaseOutcome::Released);
        assert_all_held(timeout(10 * SECOND, waiters.join_all()).await.unwrap());
        until_nothing_left(&mut redis, &key).await;
    }
}

#[tokio::test]
async fn waiters_get_through_after_the_server_restarted() {
    let _turn = docker_shared();
    let server = own_redis();
    for wait in WaitPolicy::ALL {
        let key = unique_key();
        let (locks, _) = locks_at(&server.address, waiting_by(wait), LONG);
        let held = locks.acquire(&key, soon()).await.unwrap();
        let waiters = wait_for(&locks, &key, Instant::now() + 20 * SECOND);
        let mut redis = connection_to(&server.address).await;
        until_they_wait(&mut redis, wait, &key).await;
        // It forgets the lock and the line.
        server.stop();
        server.start();
        assert_all_held(timeout(15 * SECOND, waiters.join_all()).await.unwrap());
        assert_ne!(held.release().await, ReleaseOutcome::Released);
        let mut redis = connection_to(&server.address).await;
        until_nothing_left(&mut redis, &key).await;
    }
}

#[tokio::test]
async fn a_release_gets_through_after_its_connection_was_killed() {
    let _turn = docker_shared();
    let server = own_redis();
    let mut redis = connection_to(&server.address).await;
    for wait in WaitPolicy::ALL {
        let key = unique_key();
        let (locks, _) = locks_at(&server.address, waiting_by(wait), LONG);
        let held = locks.acquire(&key, soon()).await.unwrap();
        kill_all_others(&mut redis).await;
        assert_eq!(held.release().await, ReleaseOutcome::Released, "{wait}");
        until_nothing_left(&mut redis, &key).await;
    }
}

#[tokio::test]
async fn waiters_of_a_server_that_stays_away_are_told_at_their_deadline() {
    let _turn = docker_shared();
    for wait in WaitPolicy::ALL {
        let server = own_redis();
        let key = unique_key();
        let (locks, _) = locks_at(&server.address, waiting_by(wait), LONG);
        let _held = locks.acquire(&key, soon()).await.unwrap();
        let deadline = Instant::now() + 3 * SECOND;
        let waiters = wait_for(&locks, &key, deadline);
        let mut redis = connection_to(&server.address).await;
        until_they_wait(&mut redis, wait, &key).await;
        server.stop();
        let told = timeout(6 * SECOND, waiters.join_all()).await;
        assert!(Instant::now() >= deadline);
        for outcome in told.expect("nobody hangs") {
            let error = outcome.unwrap_err();
            let at_deadline = matches!(error.problem, LockProblem::Timeout { .. });
            assert!(at_deadline, "{wait}: {error}");
            assert_eq!((&error.node, &error.key), (&server.address, &key));
        }
    }
}

/// Some who wait, hold for a moment, and release.
fn wait_for(
    locks: &LockClient,
    key: &str,
    deadline: Instant,
) -> JoinSet<Result<FencingToken, LockError>> {
    let mut waiters = JoinSet::new();
    for _ in 0..WAITERS {
        let (locks, key) = (locks.clone(), key.to_owned());
        waiters.spawn(async move {
            let lease = locks.acquire(&key, deadline).await?;
            let token = lease.fence();
            assert_eq!(lease.release().await, ReleaseOutcome::Released);
            Ok(token)
        });
    }
    waiters
}

fn assert_all_held(waited: Vec<Result<FencingToken, LockError>>) {
    let tokens: BTreeSet<FencingToken> = waited.into_iter().map(Result::unwrap).collect();
    assert_eq!(tokens.len(), WAITERS);
}

async fn until_they_wait(redis: &mut MultiplexedConnection, wait: WaitPolicy, key: &str) {
    match wait {
        // They do not show at the server.
        WaitPolicy::Spin => sleep(Duration::from_millis(50)).await,
        WaitPolicy::Notify => until_subscribers(redis, &format!("freed:{{{key}}}"), 1).await,
        WaitPolicy::Queue => until_in_line(redis, key, WAITERS).await,
    }
}

async fn kill_all_others(redis: &mut MultiplexedConnection) {
    for kind in ["normal", "pubsub"] {
        let mut kill = redis::cmd("CLIENT");
        kill.arg(&["KILL", "TYPE", kind, "SKIPME", "yes"]);
        let () = kill.query_async(redis).await.unwrap();
    }
}

/// Returns when the client noticed that its connection broke, and has another.
async fn until_answered(locks: &LockClient) {
    let answered = async {
        while locks.try_acquire(&unique_key()).await.is_err() {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(5 * SECOND, answered).await.expect("it reconnects");
}
