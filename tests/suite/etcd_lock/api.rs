//! The lock that the server itself offers.

use super::kit::*;
use crate::support::docker_shared;
use fencing_lock::ReleaseOutcome;
use std::time::Duration;
use tokio::time::{Instant, timeout};

#[tokio::test]
async fn its_tokens_grow_and_its_keys_go() {
    let _turn = docker_shared();
    let (etcd, key) = (etcd().await, unique_key());
    let (locks, _) = locks_of(api_backend(), LONG);
    let mut last = 0;
    for _ in 0..50 {
        let lease = locks.acquire(&key, soon()).await.unwrap();
        assert!(lease.fence().0 > last, "{} after {last}", lease.fence());
        last = lease.fence().0;
        let place = &line(&etcd, &key).await[0];
        assert_eq!(place.create_revision() as u64, last);
        assert_eq!(lease.release().await, ReleaseOutcome::Released);
    }
    assert_eq!(line(&etcd, &key).await.len(), 0);
}

#[tokio::test]
async fn it_never_deletes_the_lock_of_another() {
    let _turn = docker_shared();
    let (etcd, key) = (etcd().await, unique_key());
    let (locks, _) = locks_of(api_backend(), LONG);
    let first = locks.acquire(&key, soon()).await.unwrap();
    let session = line(&etcd, &key).await[0].lease();
    etcd.lease_client().revoke(session).await.unwrap();
    let second = locks.acquire(&key, soon()).await.unwrap();
    assert!(second.fence() > first.fence());
    assert_eq!(first.release().await, ReleaseOutcome::Superseded);
    assert_eq!(line(&etcd, &key).await.len(), 1);
    assert_eq!(second.release().await, ReleaseOutcome::Released);
}

#[tokio::test]
async fn a_wait_that_is_given_up_leaves_no_key() {
    let _turn = docker_shared();
    let (etcd, key) = (etcd().await, unique_key());
    let (locks, _) = locks_of(api_backend(), LONG);
    let holder = locks.try_acquire(&key).await.unwrap().expect("free");
    assert!(locks.try_acquire(&key).await.unwrap().is_none());
    // Few: the server is known to wedge after many.
    for _ in 0..3 {
        let deadline = Instant::now() + Duration::from_millis(200);
        let late = timeout(3 * SECOND, locks.acquire(&key, deadline)).await;
        assert!(late.expect("by its deadline").is_err());
    }
    until_length(&etcd, &key, 1).await;
    assert_eq!(holder.release().await, ReleaseOutcome::Released);
    until_length(&etcd, &key, 0).await;
}
