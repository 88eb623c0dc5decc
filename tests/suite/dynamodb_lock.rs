//! The locks in a table of DynamoDB, on moto: what they grant, what they refuse, and what they
//! leave behind. One server serves most tests at once, so each has its own key.

mod faults;
mod kit;
mod late;
mod observer;
mod servers;

use crate::support::{contenders_exclude_each_other, docker_shared, times};
use fencing_lock::{LockProblem, LostReason, ReleaseOutcome, RenewError, keep_renewed};
use kit::*;
use serde_json::json;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

#[tokio::test(flavor = "multi_thread")]
async fn contenders_of_many_processes_exclude_each_other() {
    let _turn = docker_shared();
    let clients = (0..8).map(|_| locks(LONG).0).collect();
    contenders_exclude_each_other(&unique_key(), clients).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn contenders_of_one_process_exclude_each_other() {
    let _turn = docker_shared();
    let (locks, metrics) = locks(LONG);
    contenders_exclude_each_other(&unique_key(), vec![locks; 15]).await;
    assert_eq!(metrics.leases_held.get(), 0);
}

#[tokio::test]
async fn a_hold_whose_version_stands_still_is_taken_over_and_not_earlier() {
    let _turn = docker_shared();
    let ttl = 2 * SECOND;
    let ((first, metrics), (others, _)) = (locks(ttl), locks(LONG));
    let key = unique_key();
    let lease = first.acquire(&key, soon()).await.unwrap();
    sleep(SECOND / 2).await;
    lease.renew().await.unwrap();
    let from = Instant::now();
    let next = others.acquire(&key, from + LONG).await.unwrap();
    // The watch began after the renewal, so it ends a whole lease later.
    assert!(from.elapsed() >= ttl, "{:?}", from.elapsed());
    assert!(lease.is_lost(), "the holder gave up first");
    assert!(next.fence() > lease.fence());
    assert_eq!(lease.release().await, ReleaseOutcome::Superseded);
    assert_eq!(metrics.release_by_non_owner.get(), 1);
    assert_eq!(holder(&key).await.as_deref(), Some(next.owner()));
    assert_eq!(next.release().await, ReleaseOutcome::Released);
    assert_eq!(fence(&key).await, 2);
}

#[tokio::test]
async fn single_tries_watch_the_version_as_a_waiter_does() {
    let _turn = docker_shared();
    let ((first, _), (others, _)) = (locks(SECOND), locks(LONG));
    let key = unique_key();
    let lease = first.acquire(&key, soon()).await.unwrap();
    assert!(others.try_acquire(&key).await.unwrap().is_none());
    // The first of these saw the version, and the lease counts from there.
    sleep_until(lease.deadline() + SECOND).await;
    let next = others.try_acquire(&key).await.unwrap();
    assert_eq!(next.expect("taken over").fence().0, 2);
}

/// Nobody took it over, so it was held until then.
#[tokio::test]
async fn a_release_after_the_deadline_frees_what_nobody_took_over() {
    let _turn = docker_shared();
    let (locks, _) = locks(Duration::from_millis(50));
    let key = unique_key();
    let lease = locks.acquire(&key, soon()).await.unwrap();
    sleep_until(lease.deadline() + Duration::from_millis(50)).await;
    assert!(lease.is_lost());
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
    assert_eq!(holder(&key).await, None);
}

#[tokio::test]
async fn a_renewal_prolongs_what_is_held() {
    let _turn = docker_shared();
    let ((locks, metrics), (others, _)) = (locks(3 * SECOND), locks(LONG));
    let key = unique_key();
    let lease = locks.acquire(&key, soon()).await.unwrap();
    let lost = timeout(5 * SECOND, keep_renewed(&lease, || {})).await;
    assert!(lost.is_err(), "lost: {lost:?}");
    assert!(!lease.is_lost());
    assert!(others.try_acquire(&key).await.unwrap().is_none());
    assert!(metrics.renews.get() >= 3, "{}", metrics.renews.get());
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
}

#[tokio::test]
async fn a_renewal_never_re_creates_a_lease_and_never_takes_one() {
    let _turn = docker_shared();
    let (locks, metrics) = locks(LONG);
    let (another, expired) = (json!({ "S": "another" }), LostReason::Expired);
    for (change, value, expected, holds) in [
        (
            "REMOVE holder SET fence = :v",
            json!({ "N": "1" }),
            expired,
            None,
        ),
        (
            "SET holder = :v",
            another,
            LostReason::Superseded,
            Some("another"),
        ),
    ] {
        let key = unique_key();
        let lease = locks.acquire(&key, soon()).await.unwrap();
        update(&key, change, value).await;
        let renewed = lease.renew().await;
        assert!(matches!(renewed, Err(RenewError::Lost(reason)) if reason == expected));
        let told = timeout(SECOND, lease.lost()).await;
        assert_eq!(told, Ok(expected), "told before the deadline");
        assert_eq!(holder(&key).await.as_deref(), holds);
    }
    assert_eq!(metrics.renew_failures.get(), 2);
}

#[tokio::test]
async fn an_uncontended_lock_costs_two_writes() {
    let _turn = docker_shared();
    let (locks, metrics) = locks(LONG);
    let key = unique_key();
    for round in 1..=5 {
        let lease = locks.acquire(&key, soon()).await.unwrap();
        assert_eq!(lease.fence().0, round);
        assert_eq!(lease.release().await, ReleaseOutcome::Released);
    }
    assert_eq!(metrics.requests.get(), 10);
}

#[tokio::test]
async fn every_key_is_stored_as_it_is() {
    let _turn = docker_shared();
    let tail = unique_key();
    for key in ["account 42 / ü'\"\\%", "{}", &"k".repeat(200)] {
        let key = format!("{key}-{tail}");
        let (locks, _) = locks(LONG);
        let lease = locks.acquire(&key, soon()).await.unwrap();
        assert_eq!(holder(&key).await.as_deref(), Some(lease.owner()));
        assert_eq!(lease.release().await, ReleaseOutcome::Released);
    }
    let refused = locks(LONG).0.try_acquire("a\0b").await.unwrap_err();
    assert_eq!(refused.problem, LockProblem::KeyControlCharacter);
}

/// Some are cut off in the middle of a request that would be granted, some in a wait, and some
/// while they hold.
#[tokio::test]
async fn many_cancelled_waits_and_dropped_leases_leave_no_lock() {
    let _turn = docker_shared();
    let (locks, metrics) = locks(LONG);
    let keys: Vec<String> = (0..3).map(|_| unique_key()).collect();
    let mut random = fastrand::Rng::with_seed(7);
    let mut waits = JoinSet::new();
    for n in 0..times(100, 5_000) {
        let (locks, key) = (locks.clone(), keys[n % 3].clone());
        let patience = Duration::from_micros(random.u64(0..100_000));
        waits.spawn(async move {
            let holding = async {
                let _lease = locks.acquire(&key, Instant::now() + LONG).await;
                sleep(Duration::from_millis(1)).await;
            };
            // Whatever it is doing when the time is over is dropped.
            let _cut_off = timeout(patience, holding).await;
        });
        if waits.len() >= 10 {
            waits.join_next().await;
        }
    }
    waits.join_all().await;
    for key in &keys {
        until_free(&crate::support::dynamodb_address(), key).await;
    }
    assert_eq!(metrics.leases_held.get(), 0);
    assert_eq!(metrics.queue_length.get(), 0);
}
