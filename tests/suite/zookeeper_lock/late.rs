//! Requests whose answers are lost, and requests that were given up and are carried out later.

use super::kit::*;
use crate::support::{Wire, docker_shared};
use fencing_lock::servers::ZOOKEEPER_LOCKS;
use fencing_lock::{LockClient, ReleaseOutcome};
use std::time::Duration;
use tokio::time::{sleep, timeout};
use zookeeper_client::Client;

/// A wire to a server, and a client that has a session over it and has had the lock once.
async fn behind_a_wire(ttl: Duration, key: &str) -> (Wire, LockClient) {
    let wire = Wire::to(addresses()[0].clone()).await;
    let (locks, _) = locks_at(std::slice::from_ref(&wire.address), ttl);
    let lease = locks.acquire(key, soon()).await.unwrap();
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
    (wire, locks)
}

/// The number of places that were ever made or deleted in a line.
async fn changes(zookeeper: &Client, key: &str) -> i32 {
    let line = format!("{ZOOKEEPER_LOCKS}/{key}");
    zookeeper.sync(&line).await.unwrap();
    let stat = zookeeper.check_stat(&line).await.unwrap();
    stat.map_or(0, |stat| stat.cversion)
}

async fn until_changed(zookeeper: &Client, key: &str, changed: i32) {
    let reached = async {
        while changes(zookeeper, key).await < changed {
            sleep(SECOND / 100).await;
        }
    };
    timeout(10 * SECOND, reached).await.expect("it was made");
}

#[tokio::test]
async fn a_place_whose_creation_was_not_answered_is_found_again() {
    let _turn = docker_shared();
    let (zookeeper, key) = (connection().await, unique_key());
    let (wire, locks) = behind_a_wire(LONG, &key).await;
    wire.hold();
    let waiting = waiter(&locks, &key);
    wire.until_a_request_is_held().await;
    wire.let_requests_go();
    let lease = timeout(10 * SECOND, waiting)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    let [(path, stat)] = &line(&zookeeper, &key).await[..] else {
        panic!("one place");
    };
    assert!(path.contains(lease.owner()));
    assert_eq!(stat.czxid as u64, lease.fence().0);
    assert_eq!(changes(&zookeeper, &key).await, 3, "it was made once");
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
}

/// CURATOR-604: the node of the old session is still there when the new session begins.
#[tokio::test]
async fn a_place_of_an_old_session_is_never_taken_for_ours() {
    let _turn = docker_shared();
    let (zookeeper, key) = (connection().await, unique_key());
    let (wire, locks) = behind_a_wire(2 * SECOND, &key).await;
    wire.hold();
    wire.refuse(true);
    let waiting = waiter(&locks, &key);
    wire.until_a_request_is_held().await;
    wire.let_requests_go();
    until_line(&zookeeper, &key, 1).await;
    let old = line(&zookeeper, &key).await.remove(0).1;
    // The session is over, by its own clock, before the ensemble can be reached again.
    wire.until_refused().await;
    sleep(2 * SECOND).await;
    wire.refuse(false);
    let lease = timeout(10 * SECOND, waiting)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert!(lease.fence().0 > old.czxid as u64);
    let [(path, stat)] = &line(&zookeeper, &key).await[..] else {
        panic!("one place");
    };
    assert!(path.contains(lease.owner()));
    assert_ne!(stat.ephemeral_owner, old.ephemeral_owner);
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
}

#[tokio::test]
async fn a_request_that_was_given_up_and_comes_later_is_undone() {
    let _turn = docker_shared();
    let (zookeeper, key) = (connection().await, unique_key());
    let (wire, locks) = behind_a_wire(LONG, &key).await;
    wire.hold();
    let waiting = waiter(&locks, &key);
    wire.until_a_request_is_held().await;
    waiting.abort();
    wire.let_go();
    // It was made and deleted once before, too.
    until_changed(&zookeeper, &key, 4).await;
    assert!(line(&zookeeper, &key).await.is_empty());
}

#[tokio::test]
async fn a_try_whose_answer_is_lost_leaves_nothing_behind() {
    let _turn = docker_shared();
    let (zookeeper, key) = (connection().await, unique_key());
    let (wire, locks) = behind_a_wire(LONG, &key).await;
    wire.hold();
    let waiting = waiter(&locks, &key);
    wire.until_a_request_is_held().await;
    wire.let_requests_go();
    until_changed(&zookeeper, &key, 3).await;
    waiting.abort();
    until_changed(&zookeeper, &key, 4).await;
    assert!(line(&zookeeper, &key).await.is_empty());
}
