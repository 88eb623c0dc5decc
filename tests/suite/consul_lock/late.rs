//! Requests that were given up and reach the server afterwards.

use super::kit::*;
use crate::support::{Wire, docker_shared, own_consul};
use fencing_lock::{LockClient, ReleaseOutcome};
use tokio::time::{Instant, sleep, timeout};

/// The connection stands, and a session waits for its next lock.
async fn warm(locks: &LockClient) {
    let lease = locks.acquire(&unique_key(), soon()).await.unwrap();
    lease.release().await;
}

#[tokio::test]
async fn tries_that_lay_in_a_frozen_server_are_undone() {
    let _turn = docker_shared();
    let server = own_consul(&[]);
    let (locks, _) = locks_at(&server.address, LONG);
    warm(&locks).await;
    let key = unique_key();
    server.freeze();
    locks.try_acquire(&key).await.unwrap_err();
    server.thaw();
    // The server may carry out the try or its undo first. After both, nothing is left.
    let consul = consul_at(&server.address);
    let undone = async {
        while consul.sessions().await > 0 {
            sleep(SECOND / 100).await;
        }
    };
    timeout(10 * SECOND, undone)
        .await
        .expect("its session ends");
    assert_eq!(consul.session_of(&key).await, None);
}

/// The end of its session is what refuses it: the same request in the name of a session that is
/// there is granted, however late it comes.
#[tokio::test]
async fn a_try_that_comes_after_its_undo_is_refused() {
    let _turn = docker_shared();
    let server = own_consul(&[]);
    let consul = consul_at(&server.address);

    let wire = Wire::to(server.address.clone()).await;
    let (held, key) = (consul_at(&wire.address), unique_key());
    let session = held.new_session().await;
    wire.hold();
    let asking = tokio::spawn({
        let (key, session) = (key.clone(), session.clone());
        async move { held.lock(&key, &session).await }
    });
    wire.until_a_request_is_held().await;
    wire.cut();
    wire.until_the_held_ended().await;
    let granted = async {
        while consul.session_of(&key).await.as_ref() != Some(&session) {
            sleep(SECOND / 100).await;
        }
    };
    timeout(10 * SECOND, granted).await.expect("it is granted");
    asking.abort();

    let wire = Wire::to(server.address.clone()).await;
    let ((locks, _), key) = (locks_at(&wire.address, LONG), unique_key());
    warm(&locks).await;
    wire.hold();
    // The first try is held back and given up; another one gets through.
    let lease = locks.acquire(&key, Instant::now() + LONG).await.unwrap();
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
    let before = consul.entry(&key).await;
    wire.cut();
    wire.until_the_held_ended().await;
    // What came before this is in the log before this.
    consul.new_session().await;
    assert_eq!(consul.entry(&key).await, before, "it changed nothing");
    assert_eq!(before.unwrap()["LockIndex"], 1);
}

#[tokio::test]
async fn a_release_that_is_not_answered_ends_its_session() {
    let _turn = docker_shared();
    let server = own_consul(&[]);
    let wire = Wire::to(server.address.clone()).await;
    let ((locks, _), key) = (locks_at(&wire.address, LONG), unique_key());
    let lease = locks.acquire(&key, soon()).await.unwrap();
    wire.hold();
    assert_eq!(lease.release().await, ReleaseOutcome::Unknown);
    until_free(&server.address, &key).await;
}
