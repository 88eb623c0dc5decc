//! The locks in a real Consul: what they grant, what they refuse, and what they leave behind.
//! One server serves all tests at once, so each has its own key.

mod cancelling;
mod faults;
mod kit;
mod late;
mod observer;
mod tokens;

use crate::support::{consul_address, contenders_exclude_each_other, docker_shared};
use fencing_lock::{LockProblem, LostReason, ReleaseOutcome, RenewError, keep_renewed};
use kit::*;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

#[tokio::test(flavor = "multi_thread")]
async fn contenders_of_many_processes_exclude_each_other() {
    let _turn = docker_shared();
    let clients = (0..10).map(|_| locks(LONG).0).collect();
    contenders_exclude_each_other(&unique_key(), clients).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn contenders_of_one_process_exclude_each_other() {
    let _turn = docker_shared();
    let (locks, metrics) = locks(LONG);
    contenders_exclude_each_other(&unique_key(), vec![locks; 20]).await;
    assert_eq!(metrics.leases_held.get(), 0);
}

#[tokio::test]
async fn a_release_never_frees_the_lock_of_another_and_says_what_became_of_its_own() {
    let _turn = docker_shared();
    let ((locks, metrics), (others, _)) = (locks(LONG), locks(LONG));
    let (consul, key) = (consul(), unique_key());
    let first = locks.acquire(&key, soon()).await.unwrap();
    consul.end_session_of(&key).await;
    let second = others.acquire(&key, soon()).await.unwrap();
    assert!(second.fence() > first.fence());
    assert_eq!(first.release().await, ReleaseOutcome::Superseded);
    assert_eq!(consul.holder(&key).await.as_deref(), Some(second.owner()));
    consul.end_session_of(&key).await;
    assert_eq!(second.release().await, ReleaseOutcome::Expired);
    assert_eq!(metrics.release_by_non_owner.get(), 1);
}

#[tokio::test]
async fn a_renewal_prolongs_what_is_held() {
    let _turn = docker_shared();
    // The server keeps a session for twice its TTL.
    let ((locks, metrics), key) = (locks(2 * SECOND), unique_key());
    let lease = locks.acquire(&key, soon()).await.unwrap();
    let lost = timeout(6 * SECOND, keep_renewed(&lease, || {})).await;
    assert!(lost.is_err(), "lost: {lost:?}");
    assert!(!lease.is_lost());
    let (others, _) = locks_at(&consul_address(), LONG);
    assert!(others.try_acquire(&key).await.unwrap().is_none());
    assert!(metrics.renews.get() >= 3, "{}", metrics.renews.get());
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
}

#[tokio::test]
async fn a_renewal_never_re_creates_a_lock_and_never_takes_one() {
    let _turn = docker_shared();
    let ((locks, metrics), (others, _)) = (locks(LONG), locks(LONG));
    let consul = consul();
    enum Change {
        SessionEnded,
        Taken,
        Deleted,
    }
    for (change, expected) in [
        (Change::SessionEnded, LostReason::Expired),
        (Change::Taken, LostReason::Superseded),
        (Change::Deleted, LostReason::Expired),
    ] {
        let key = unique_key();
        let lease = locks.acquire(&key, soon()).await.unwrap();
        let mut taken = None;
        match change {
            Change::SessionEnded => consul.end_session_of(&key).await,
            Change::Deleted => consul.delete(&key).await,
            Change::Taken => {
                consul.end_session_of(&key).await;
                taken = Some(others.acquire(&key, soon()).await.unwrap());
            }
        }
        let renewed = lease.renew().await;
        assert!(matches!(renewed, Err(RenewError::Lost(reason)) if reason == expected));
        let told = timeout(SECOND, lease.lost()).await;
        assert_eq!(told, Ok(expected), "told before the deadline");
        let holder = taken.as_ref().map(|lease| lease.owner().to_owned());
        assert_eq!(consul.holder(&key).await, holder);
    }
    assert_eq!(metrics.renew_failures.get(), 3);
}

#[tokio::test]
async fn a_waiter_hears_of_a_release_long_before_the_end_of_the_session() {
    let _turn = docker_shared();
    let ((locks, _), (others, metrics), key) = (locks(LONG), locks(LONG), unique_key());
    let lease = locks.acquire(&key, soon()).await.unwrap();
    let waiting = tokio::spawn({
        let key = key.clone();
        async move { others.acquire(&key, Instant::now() + LONG).await }
    });
    // A session, a try, a look at the key, and the query that waits.
    while metrics.requests.get() < 4 {
        sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
    let next = timeout(4 * SECOND, waiting).await;
    next.expect("woken").unwrap().unwrap().release().await;
}

#[tokio::test]
async fn a_session_whose_lock_was_given_back_is_used_again() {
    let _turn = docker_shared();
    let ((locks, metrics), key) = (locks(LONG), unique_key());
    for _ in 0..5 {
        let lease = locks.acquire(&key, soon()).await.unwrap();
        assert_eq!(lease.release().await, ReleaseOutcome::Released);
    }
    assert_eq!(metrics.requests.get(), 1 + 5 * 2);
    assert_eq!(consul().entry(&key).await.unwrap()["LockIndex"], 5);
}

#[tokio::test]
async fn a_lock_is_delayed_only_after_the_end_of_a_session() {
    let _turn = docker_shared();
    let (locks, _) = delayed_locks(2 * SECOND);
    let (consul, key) = (consul(), unique_key());
    let lease = locks.acquire(&key, soon()).await.unwrap();
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
    let lease = locks.try_acquire(&key).await.unwrap().expect("no delay");
    let ended_at = Instant::now();
    consul.end_session_of(&key).await;
    assert!(locks.try_acquire(&key).await.unwrap().is_none());
    assert_eq!(consul.holder(&key).await, None);
    let next = locks.acquire(&key, soon()).await.unwrap();
    assert!(ended_at.elapsed() >= SECOND, "{:?}", ended_at.elapsed());
    assert_eq!(next.release().await, ReleaseOutcome::Released);
    drop(lease);
}

#[tokio::test]
async fn every_key_is_a_lock_of_its_own() {
    let _turn = docker_shared();
    let (locks, tail) = (locks(LONG).0, unique_key());
    let mut held = Vec::new();
    for key in [
        "account 42 / ü'\"\\%",
        "a//b",
        "a/b",
        "..",
        "a%2Fb",
        "?x=1&y#z",
        "{}",
    ] {
        let key = format!("{key}-{tail}");
        held.push(locks.try_acquire(&key).await.unwrap().expect("free"));
        assert!(locks.try_acquire(&key).await.unwrap().is_none(), "{key}");
    }
    let longest = locks.acquire(&"%".repeat(256), soon()).await.unwrap();
    assert_eq!(longest.release().await, ReleaseOutcome::Released);
    for lease in held {
        lease.renew().await.unwrap();
        assert_eq!(lease.release().await, ReleaseOutcome::Released);
    }
    let refused = locks.try_acquire("a\0b").await.unwrap_err();
    assert_eq!(refused.problem, LockProblem::KeyControlCharacter);
}
