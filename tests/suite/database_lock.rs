//! The locks in a real Postgres and a real MariaDB: what they grant, what they refuse, and what they
//! leave behind. One server of each serves all tests at once, so each test has its own key.

mod cancelling;
mod faults;
pub mod kit;
mod late;
mod mariadb;
mod observer;
mod servers;
mod sessions;
mod tokens;

use crate::support::{contenders_exclude_each_other, docker_shared};
use fencing_lock::{LockProblem, LostReason, ReleaseOutcome, RenewError, keep_renewed};
use kit::*;
use std::time::Duration;
use tokio::time::{sleep_until, timeout};
use tokio_postgres::types::Type;

#[tokio::test(flavor = "multi_thread")]
async fn contenders_of_many_processes_exclude_each_other() {
    let _turn = docker_shared();
    for kind in KINDS {
        let clients = (0..10).map(|_| kind.locks(LONG).0).collect();
        contenders_exclude_each_other(&unique_key(), clients).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn contenders_of_one_process_exclude_each_other() {
    let _turn = docker_shared();
    for kind in KINDS {
        let (locks, metrics) = kind.locks(LONG);
        contenders_exclude_each_other(&unique_key(), vec![locks; 20]).await;
        assert_eq!(metrics.leases_held.get(), 0);
    }
}

#[tokio::test]
async fn a_release_never_frees_the_lock_of_another() {
    let _turn = docker_shared();
    let (locks, metrics) = Kind::Lease.locks(Duration::from_millis(50));
    let key = unique_key();
    let first = locks.acquire(&key, soon()).await.unwrap();
    sleep_until(first.deadline()).await;
    let (others, _) = Kind::Lease.locks(LONG);
    let second = others.acquire(&key, soon()).await.unwrap();
    assert!(second.fence() > first.fence());
    assert_eq!(first.release().await, ReleaseOutcome::Superseded);
    let held = holder(&connection().await, &key).await;
    assert_eq!(held.as_deref(), Some(second.owner()));
    assert_eq!(metrics.release_by_non_owner.get(), 1);
    assert_eq!(second.release().await, ReleaseOutcome::Released);
}

#[tokio::test]
async fn a_release_after_the_end_says_so() {
    let _turn = docker_shared();
    let (locks, metrics) = Kind::Lease.locks(Duration::from_millis(50));
    let lease = locks.acquire(&unique_key(), soon()).await.unwrap();
    sleep_until(lease.deadline() + Duration::from_millis(50)).await;
    assert_eq!(lease.release().await, ReleaseOutcome::Expired);
    assert_eq!(metrics.release_by_non_owner.get(), 1);
}

#[tokio::test]
async fn a_renewal_prolongs_what_is_held() {
    let _turn = docker_shared();
    for kind in KINDS {
        let (locks, metrics) = kind.locks(3 * SECOND);
        let key = unique_key();
        let lease = locks.acquire(&key, soon()).await.unwrap();
        let lost = timeout(5 * SECOND, keep_renewed(&lease, || {})).await;
        assert!(lost.is_err(), "{kind:?} lost: {lost:?}");
        assert!(!lease.is_lost());
        let (others, _) = kind.locks(LONG);
        assert!(others.try_acquire(&key).await.unwrap().is_none());
        assert!(metrics.renews.get() >= 3, "{}", metrics.renews.get());
        assert_eq!(lease.release().await, ReleaseOutcome::Released);
    }
}

#[tokio::test]
async fn a_renewal_never_re_creates_a_lease_and_never_takes_one() {
    let _turn = docker_shared();
    let postgres = connection().await;
    let (locks, metrics) = Kind::Lease.locks(LONG);
    for (change, expected, holds) in [
        ("owner = NULL", LostReason::Expired, None),
        ("expires_at = clock_timestamp()", LostReason::Expired, None),
        ("owner = 'another'", LostReason::Superseded, Some("another")),
    ] {
        let key = unique_key();
        let lease = locks.acquire(&key, soon()).await.unwrap();
        let update = format!("UPDATE fencing_locks SET {change} WHERE key = $1");
        let changed = postgres.execute_typed(&update, &[(&key, Type::TEXT)]).await;
        assert_eq!(changed.unwrap(), 1);
        let renewed = lease.renew().await;
        assert!(matches!(renewed, Err(RenewError::Lost(reason)) if reason == expected));
        let told = timeout(SECOND, lease.lost()).await;
        assert_eq!(told, Ok(expected), "told before the deadline");
        assert_eq!(holder(&postgres, &key).await.as_deref(), holds);
    }
    assert_eq!(metrics.renew_failures.get(), 3);
}

#[tokio::test]
async fn a_waiter_hears_of_a_release_long_before_the_end_of_the_lease() {
    let _turn = docker_shared();
    for kind in KINDS {
        let ((locks, _), (others, metrics)) = (kind.locks(LONG), kind.locks(LONG));
        let key = unique_key();
        let lease = locks.acquire(&key, soon()).await.unwrap();
        let waiting = tokio::spawn({
            let key = key.clone();
            async move {
                others
                    .acquire(&key, tokio::time::Instant::now() + LONG)
                    .await
            }
        });
        while metrics.requests.get() < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(lease.release().await, ReleaseOutcome::Released);
        let next = timeout(4 * SECOND, waiting).await;
        next.expect("woken").unwrap().unwrap().release().await;
    }
}

#[tokio::test]
async fn every_key_is_stored_as_it_is() {
    let _turn = docker_shared();
    let tail = unique_key();
    for key in [
        "account 42 / ü'\"\\%",
        "{}",
        "a;DROP TABLE fencing_locks;",
        &"k".repeat(200),
    ] {
        let key = format!("{key}-{tail}");
        for kind in KINDS {
            let (locks, _) = kind.locks(LONG);
            let lease = locks.acquire(&key, soon()).await.unwrap();
            assert_eq!(lease.release().await, ReleaseOutcome::Released);
        }
        assert_eq!(token(&connection().await, &key).await, Some(1), "{key}");
    }
    let (locks, _) = Kind::Lease.locks(LONG);
    let refused = locks.try_acquire("a\0b").await.unwrap_err();
    assert_eq!(refused.problem, LockProblem::KeyControlCharacter);
}
