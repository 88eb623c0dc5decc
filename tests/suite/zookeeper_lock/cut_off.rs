//! Holders that are cut off from their ensemble.

use super::kit::*;
use crate::support::{Wire, docker_shared};
use fencing_lock::{
    LockClient, LockMetrics, LockSettings, LostReason, ReleaseOutcome, ZookeeperBackend,
    ZookeeperSettings, keep_renewed,
};
use std::sync::Arc;
use tokio::time::{Instant, timeout};

#[tokio::test]
async fn a_holder_that_is_cut_off_is_told_before_another_is_granted() {
    let _turn = docker_shared();
    let wire = Wire::to(addresses()[0].clone()).await;
    let ttl = 3 * SECOND;
    let (held_by, _) = locks_at(std::slice::from_ref(&wire.address), ttl);
    let key = unique_key();
    let lease = held_by.acquire(&key, soon()).await.unwrap();
    wire.hold();
    wire.refuse(true);
    let cut_at = Instant::now();
    let (others, _) = locks(ttl);
    let next = waiter(&others, &key);
    let reason = timeout(LONG, keep_renewed(&lease, || {})).await.unwrap();
    let told_at = Instant::now();
    assert_eq!(reason, LostReason::Deadline);
    assert!(told_at - cut_at < ttl + SECOND, "{:?}", told_at - cut_at);
    let next = timeout(10 * SECOND, next).await.unwrap().unwrap().unwrap();
    assert!(next.acquired_at() >= told_at, "two believed to hold it");
    assert!(next.fence() > lease.fence());
    // Only a server that can be reached says who holds it now.
    wire.refuse(false);
    wire.cut();
    assert_eq!(lease.release().await, ReleaseOutcome::Superseded);
    assert_eq!(next.release().await, ReleaseOutcome::Released);
}

#[tokio::test]
async fn a_silent_connection_is_left_for_another_and_nothing_is_lost() {
    let _turn = docker_shared();
    let wire = Wire::to(addresses()[0].clone()).await;
    let (locks, _) = locks_at(std::slice::from_ref(&wire.address), 4 * SECOND);
    let key = unique_key();
    let lease = locks.acquire(&key, soon()).await.unwrap();
    let waiting = waiter(&locks, &key);
    until_line(&connection().await, &key, 2).await;
    wire.hold();
    let lost = timeout(6 * SECOND, keep_renewed(&lease, || {})).await;
    assert!(lost.is_err(), "lost: {lost:?}");
    // The waiter kept its place, and its watch is at the other connection.
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
    let next = timeout(10 * SECOND, waiting)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert_eq!(next.release().await, ReleaseOutcome::Released);
}

#[tokio::test]
async fn a_release_that_is_not_heard_is_sent_again() {
    let _turn = docker_shared();
    let wire = Wire::to(addresses()[0].clone()).await;
    let (locks, _) = locks_at(std::slice::from_ref(&wire.address), LONG);
    let key = unique_key();
    let lease = locks.acquire(&key, soon()).await.unwrap();
    wire.hold();
    // The connection is left after a second, and the release goes over the next one.
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
    assert!(line(&connection().await, &key).await.is_empty());
}

#[tokio::test]
async fn a_backend_that_is_closed_leaves_no_place() {
    let _turn = docker_shared();
    let (zookeeper, key) = (connection().await, unique_key());
    let backend = ZookeeperBackend::new(&addresses(), ZookeeperSettings::default());
    let backend = Arc::new(backend.unwrap());
    let settings = LockSettings { ttl: LONG, seed: 1 };
    let locks = LockClient::new(backend.clone(), settings, LockMetrics::default()).unwrap();
    let lease = locks.acquire(&key, soon()).await.unwrap();
    until_line(&zookeeper, &key, 1).await;
    // Nobody releases it, and its session would last for a minute.
    backend.close().await;
    assert_eq!(lease.lost_reason(), Some(LostReason::SessionOver));
    until_line(&zookeeper, &key, 0).await;
    // The next attempt has a new session.
    let next = locks.acquire(&key, soon()).await.unwrap();
    assert!(next.fence() > lease.fence());
}
