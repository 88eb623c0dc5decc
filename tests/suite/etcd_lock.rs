//! The locks on a real etcd of three members: what they grant, what they
//! refuse, and what they leave behind. One cluster serves all tests at once, so
//! each has its own key.

mod api;
mod deposed;
mod faults;
pub mod kit;
mod late;
mod line;
mod observer;
mod relays;
mod strangers;

use crate::support::{contenders_exclude_each_other, docker_shared};
use fencing_lock::ReleaseOutcome;
use fencing_lock::{LockBackend, LockError, LockProblem, LostReason, RenewError, keep_renewed};
use kit::*;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

#[tokio::test]
async fn contenders_of_one_and_of_two_sessions_exclude_each_other() {
    let _turn = docker_shared();
    for backends in [
        [backend() as Arc<dyn LockBackend>, backend()],
        [api_backend(), api_backend()],
    ] {
        let client = |n: usize| locks_of(backends[n % 2].clone(), LONG).0;
        contenders_exclude_each_other(&unique_key(), (0..20).map(client).collect()).await;
    }
}

#[tokio::test]
async fn the_token_is_the_create_revision_of_the_holders_key() {
    let _turn = docker_shared();
    let (locks, _) = locks(LONG);
    let (etcd, key) = (etcd().await, unique_key());
    let lease = locks.acquire(&key, soon()).await.unwrap();
    // The store moves on, and the token does not.
    let mut kv = etcd.kv_client();
    kv.put(format!("/elsewhere/{key}"), "", None).await.unwrap();
    let line = line(&etcd, &key).await;
    assert_eq!(line.len(), 1);
    assert_eq!(line[0].create_revision() as u64, lease.fence().0);
    assert_eq!(line[0].value_str().unwrap(), lease.owner());
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
}

#[tokio::test]
async fn a_busy_lock_is_not_granted_and_a_try_leaves_nothing_behind() {
    let _turn = docker_shared();
    let (locks, metrics) = locks(LONG);
    let (etcd, key) = (etcd().await, unique_key());
    let held = locks.try_acquire(&key).await.unwrap().expect("free");
    assert!(locks.try_acquire(&key).await.unwrap().is_none());
    assert_eq!(line(&etcd, &key).await.len(), 1);
    let started_at = Instant::now();
    let deadline = started_at + Duration::from_millis(300);
    let error = locks.acquire(&key, deadline).await.unwrap_err();
    assert!(
        matches!(error.problem, LockProblem::Timeout { last: None, .. }),
        "{error}"
    );
    assert!(started_at.elapsed() < LONG / 4);
    assert_eq!(metrics.acquire_timeouts.get(), 1);
    until_length(&etcd, &key, 1).await;
    assert_eq!(held.release().await, ReleaseOutcome::Released);
    assert_eq!(line(&etcd, &key).await.len(), 0);
}

#[tokio::test]
async fn a_key_within_a_key_is_another_lock() {
    let _turn = docker_shared();
    let (locks, _) = locks(LONG);
    let key = unique_key();
    let keys = [key.clone(), format!("{key}/a"), format!("{key}%2Fa")];
    let mut leases = Vec::new();
    for key in &keys {
        leases.push(locks.try_acquire(key).await.unwrap().expect(key));
    }
    for lease in leases {
        assert_eq!(lease.release().await, ReleaseOutcome::Released);
    }
}

#[tokio::test]
async fn a_release_never_deletes_the_lock_of_another() {
    let _turn = docker_shared();
    let (etcd, key) = (etcd().await, unique_key());
    let (mine, metrics) = locks(LONG);
    let (theirs, _) = locks(LONG);
    let first = mine.acquire(&key, soon()).await.unwrap();
    let session = line(&etcd, &key).await[0].lease();
    etcd.lease_client().revoke(session).await.unwrap();
    let second = theirs.acquire(&key, soon()).await.unwrap();
    assert!(second.fence() > first.fence());

    assert_eq!(first.release().await, ReleaseOutcome::Superseded);
    let line = line(&etcd, &key).await;
    assert_eq!(line[0].value_str().unwrap(), second.owner());
    assert_eq!(metrics.release_by_non_owner.get(), 1);
    assert_eq!(metrics.release_by_non_owner_applied.get(), 0);
    assert_eq!(second.release().await, ReleaseOutcome::Released);
}

#[tokio::test]
async fn a_lost_session_frees_all_its_locks_and_tells_every_holder() {
    let _turn = docker_shared();
    let etcd = etcd().await;
    let (locks, _) = locks(4 * SECOND);
    let keys: Vec<String> = (0..10).map(|_| unique_key()).collect();
    let mut leases = Vec::new();
    for key in &keys {
        leases.push(locks.acquire(key, soon()).await.unwrap());
    }
    let session = line(&etcd, &keys[0]).await[0].lease();
    etcd.lease_client().revoke(session).await.unwrap();
    for lease in &leases {
        // At its next beat, which is long before the deadline.
        let told = timeout(3 * SECOND, lease.lost()).await;
        assert_eq!(told, Ok(LostReason::Expired));
    }
    for key in &keys {
        assert_eq!(line(&etcd, key).await.len(), 0);
    }
    let again = locks.acquire(&keys[0], soon()).await.unwrap();
    assert!(leases.iter().all(|lost| lost.fence() < again.fence()));
    assert_ne!(line(&etcd, &keys[0]).await[0].lease(), session);
    assert!(!again.is_lost());
    for lease in leases.drain(1..) {
        assert_eq!(lease.release().await, ReleaseOutcome::Expired);
    }
    assert_eq!(leases.remove(0).release().await, ReleaseOutcome::Superseded);
    assert_eq!(again.release().await, ReleaseOutcome::Released);
}

#[tokio::test]
async fn a_session_that_was_lost_unnoticed_costs_no_attempt() {
    let _turn = docker_shared();
    let (etcd, key) = (etcd().await, unique_key());
    let (locks, _) = locks(LONG);
    let lease = locks.acquire(&key, soon()).await.unwrap();
    let session = line(&etcd, &key).await[0].lease();
    etcd.lease_client().revoke(session).await.unwrap();
    let again = locks.try_acquire(&key).await.unwrap().expect("free");
    // The attempt that was refused told the others.
    assert_eq!(lease.lost_reason(), Some(LostReason::Expired));
    assert_eq!(again.release().await, ReleaseOutcome::Released);
}

#[tokio::test]
async fn a_session_keeps_itself_alive_and_a_renewal_confirms_it() {
    let _turn = docker_shared();
    let (etcd, key) = (etcd().await, unique_key());
    for backend in [backend() as Arc<dyn LockBackend>, api_backend()] {
        let (locks, metrics) = locks_of(backend, 3 * SECOND);
        let lease = locks.acquire(&key, soon()).await.unwrap();
        assert!(lease.ttl() >= 3 * SECOND, "{:?}", lease.ttl());
        let first_deadline = lease.deadline();
        let lost = timeout(2 * lease.ttl(), lease.lost()).await;
        assert!(lost.is_err(), "lost: {lost:?}");
        assert!(lease.deadline() > first_deadline);
        let lost = timeout(2 * SECOND, keep_renewed(&lease, || {})).await;
        assert!(lost.is_err(), "lost: {lost:?}");
        assert!(metrics.renews.get() >= 1);
        assert_eq!(line(&etcd, &key).await.len(), 1);
        assert_eq!(lease.release().await, ReleaseOutcome::Released);
    }
}

#[tokio::test]
async fn a_renewal_never_re_creates_a_lock_and_never_takes_one() {
    let _turn = docker_shared();
    let (etcd, key) = (etcd().await, unique_key());
    let (theirs, _) = locks(LONG);
    let lost_by = |result, reason| match result {
        Err(RenewError::Lost(lost)) => assert_eq!(lost, reason),
        other => panic!("{other:?}"),
    };
    for backend in [backend() as Arc<dyn LockBackend>, api_backend()] {
        let (mine, _) = locks_of(backend, LONG);
        let first = mine.acquire(&key, soon()).await.unwrap();
        let place = line(&etcd, &key).await[0].key().to_vec();
        etcd.kv_client().delete(place, None).await.unwrap();
        lost_by(first.renew().await, LostReason::Expired);
        assert_eq!(line(&etcd, &key).await.len(), 0);

        let second = mine.acquire(&key, soon()).await.unwrap();
        let place = line(&etcd, &key).await[0].key().to_vec();
        etcd.kv_client().delete(place, None).await.unwrap();
        let third = theirs.acquire(&key, soon()).await.unwrap();
        lost_by(second.renew().await, LostReason::Superseded);
        assert!(!third.is_lost());
        assert_eq!(third.release().await, ReleaseOutcome::Released);
    }
}

#[tokio::test]
async fn closing_ends_every_lock_at_once() {
    let _turn = docker_shared();
    let (etcd, key) = (etcd().await, unique_key());
    let backend = backend();
    // Each TTL has a session, and all but the last are over before.
    let mut leases = Vec::new();
    for n in 0..8 {
        let (locks, _) = locks_of(backend.clone(), LONG + n * SECOND);
        let key = format!("{key}-{n}");
        leases.push(locks.acquire(&key, soon()).await.unwrap());
    }
    let last = leases.pop().unwrap();
    for lease in &leases {
        let session = line(&etcd, lease.key()).await[0].lease();
        etcd.lease_client().revoke(session).await.unwrap();
    }
    backend.close().await.unwrap();
    assert_eq!(last.lost().await, LostReason::SessionOver);
    assert_eq!(line(&etcd, last.key()).await.len(), 0);
}

#[tokio::test]
async fn bad_input_is_refused_before_anything_is_sent() {
    let _turn = docker_shared();
    let (locks, metrics) = locks(LONG);
    let problem = |result: Result<_, LockError>| result.map(|_| ()).unwrap_err().problem;
    let nothing = locks.acquire("", soon()).await;
    assert_eq!(problem(nothing), LockProblem::KeyEmpty);
    let error = locks.try_acquire("a\0b").await.unwrap_err();
    assert_eq!(error.problem, LockProblem::KeyControlCharacter);
    assert_eq!((error.backend, error.node), ("etcd", members().join(",")));
    assert_eq!(metrics.acquire_attempts.get(), 0);
}
