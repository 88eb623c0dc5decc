//! The lock on a real Redis: what it grants, what it refuses, and what it
//! leaves behind. One server serves all tests at once, so each has its own key.

mod cancelling;
mod cohort;
mod confused;
mod dead_waiters;
mod faults;
mod hand_offs;
pub mod kit;
mod late;
mod metrics;
mod observer;
mod queue;
mod reconnecting;
mod reentrant;
mod sharded;
mod tokens;
mod unsafe_release;
mod waiting;

use crate::support::{docker_shared, redis_address};
use fencing_lock::ReleaseOutcome;
use fencing_lock::{
    LockClient, LockError, LockMetrics, LockProblem, LockSettings, LostReason, RenewError,
    keep_renewed,
};
use kit::*;
use redis::AsyncCommands;
use redis::aio::MultiplexedConnection;
use std::time::Duration;
use tokio::time::{sleep_until, timeout};

#[tokio::test]
async fn a_release_never_deletes_the_lock_of_another() {
    let _turn = docker_shared();
    let (locks, metrics) = locks(Duration::from_millis(50));
    let key = unique_key();
    let first = locks.acquire(&key, soon()).await.unwrap();
    sleep_until(first.deadline()).await;
    let (others, _) = kit::locks(LONG);
    let second = others.acquire(&key, soon()).await.unwrap();
    assert!(second.fence() > first.fence());

    assert_eq!(first.release().await, ReleaseOutcome::Superseded);
    assert_eq!(holder(&key).await.as_deref(), Some(second.owner()));
    assert_eq!(metrics.release_by_non_owner.get(), 1);
    assert_eq!(metrics.release_by_non_owner_applied.get(), 0);
    assert_eq!(second.release().await, ReleaseOutcome::Released);
}

#[tokio::test]
async fn a_release_after_the_end_says_so() {
    let _turn = docker_shared();
    let (locks, metrics) = locks(Duration::from_millis(50));
    let lease = locks.acquire(&unique_key(), soon()).await.unwrap();
    sleep_until(lease.deadline() + Duration::from_millis(50)).await;
    assert_eq!(lease.release().await, ReleaseOutcome::Expired);
    assert_eq!(metrics.release_by_non_owner.get(), 1);
    assert_eq!(metrics.release_by_non_owner_applied.get(), 0);
}

#[tokio::test]
async fn a_renewal_prolongs_what_is_held() {
    let _turn = docker_shared();
    let (locks, metrics) = locks(3 * SECOND);
    let key = unique_key();
    let lease = locks.acquire(&key, soon()).await.unwrap();
    let lost = timeout(5 * SECOND, keep_renewed(&lease, || {})).await;
    assert!(lost.is_err(), "lost: {lost:?}");
    assert!(!lease.is_lost());
    assert_eq!(holder(&key).await.as_deref(), Some(lease.owner()));
    assert!(metrics.renews.get() >= 3, "{}", metrics.renews.get());
}

#[tokio::test]
async fn a_renewal_never_re_creates_a_lock_and_never_takes_one() {
    let _turn = docker_shared();
    let (locks, metrics) = locks(LONG);
    let key = unique_key();
    let lease = locks.acquire(&key, soon()).await.unwrap();
    let mut redis = redis_connection().await;
    let () = redis.del(format!("lock:{{{key}}}")).await.unwrap();
    let lost = |result| matches!(result, Err(RenewError::Lost(LostReason::Expired)));
    assert!(lost(lease.renew().await));
    assert_eq!(holder(&key).await, None);
    let told = timeout(SECOND, lease.lost()).await;
    assert_eq!(told, Ok(LostReason::Expired), "told before the deadline");
    assert!(lost(lease.renew().await), "once lost, always lost");
    assert_eq!(metrics.renew_failures.get(), 2);

    let lease = locks.acquire(&key, soon()).await.unwrap();
    let () = redis
        .set_options(
            format!("lock:{{{key}}}"),
            "another",
            redis::SetOptions::default().with_expiration(redis::SetExpiry::PX(5_000)),
        )
        .await
        .unwrap();
    assert!(matches!(
        lease.renew().await,
        Err(RenewError::Lost(LostReason::Superseded))
    ));
    assert_eq!(holder(&key).await.as_deref(), Some("another"));
    let left_ms: i64 = redis.pttl(format!("lock:{{{key}}}")).await.unwrap();
    assert!(left_ms <= 5_000, "another's lock was prolonged");
}

#[tokio::test]
async fn scripts_work_after_the_server_forgot_them() {
    let _turn = docker_shared();
    let (locks, _) = locks(LONG);
    let key = unique_key();
    let mut redis = redis_connection().await;
    let mut tokens = Vec::new();
    for _ in 0..2 {
        flush_scripts(&mut redis).await;
        let lease = locks.acquire(&key, soon()).await.unwrap();
        tokens.push(lease.fence());
        flush_scripts(&mut redis).await;
        lease.renew().await.unwrap();
        flush_scripts(&mut redis).await;
        assert_eq!(lease.release().await, ReleaseOutcome::Released);
    }
    assert!(tokens[0] < tokens[1]);
}

#[tokio::test]
async fn scripts_work_while_the_server_keeps_forgetting_them() {
    let _turn = docker_shared();
    let mut redis = redis_connection().await;
    for kind in late::KINDS {
        let (locks, key) = (late::locks(kind, &redis_address()), unique_key());
        let forgetting = async {
            loop {
                flush_scripts(&mut redis).await;
            }
        };
        let using = |_| async {
            for _ in 0..20 {
                let lease = locks.acquire(&key, soon()).await.unwrap();
                assert_eq!(lease.release().await, ReleaseOutcome::Released);
            }
        };
        tokio::select! {
            () = forgetting => {}
            _ = futures_util::future::join_all((0..5).map(using)) => {}
        }
    }
}

#[tokio::test]
async fn a_key_that_begins_with_a_brace_is_a_key_like_any_other() {
    let _turn = docker_shared();
    for kind in late::KINDS {
        let key = format!("}}{}", unique_key());
        let [locks, others] = [(); 2].map(|()| late::locks(kind, &redis_address()));
        let lease = locks.acquire(&key, soon()).await.unwrap();
        assert!(others.try_acquire(&key).await.unwrap().is_none());
        lease.renew().await.unwrap();
        let waiting = tokio::spawn(async move { others.acquire(&key, soon()).await });
        assert_eq!(lease.release().await, ReleaseOutcome::Released);
        let other = waiting.await.unwrap().unwrap();
        assert_eq!(other.release().await, ReleaseOutcome::Released);
    }
}

#[tokio::test]
async fn a_grant_without_a_token_does_not_stand() {
    let _turn = docker_shared();
    let (locks, _) = locks(LONG);
    let key = unique_key();
    let mut redis = redis_connection().await;
    let fence = format!("fence:{{{key}}}");
    let () = redis.set(&fence, "not a number").await.unwrap();
    let error = locks.try_acquire(&key).await.unwrap_err();
    assert!(matches!(error.problem, LockProblem::Refused(_)), "{error}");
    assert_eq!(holder(&key).await, None);
}

#[tokio::test]
async fn bad_input_is_refused_before_anything_is_sent() {
    let _turn = docker_shared();
    let (locks, metrics) = locks(LONG);
    let problem = |result: Result<_, LockError>| result.map(|_| ()).unwrap_err().problem;
    assert_eq!(
        problem(locks.acquire("", soon()).await),
        LockProblem::KeyEmpty
    );
    assert_eq!(
        problem(locks.acquire(&"k".repeat(257), soon()).await),
        LockProblem::KeyTooLong { length_bytes: 257 }
    );
    let error = locks.try_acquire("a\0b").await.unwrap_err();
    assert_eq!(error.problem, LockProblem::KeyControlCharacter);
    assert_eq!(
        (error.backend, error.node.as_str(), error.key.as_str()),
        ("redis", redis_address().as_str(), "a\0b")
    );
    assert_eq!(metrics.acquire_attempts.get(), 0);

    for ttl in [Duration::ZERO, Duration::from_secs(86_401)] {
        let settings = LockSettings { ttl, seed: 1 };
        let client = LockClient::new(backend(&redis_address()), settings, LockMetrics::default());
        assert!(client.is_err(), "{ttl:?}");
    }
}

async fn flush_scripts(redis: &mut MultiplexedConnection) {
    let mut command = redis::cmd("SCRIPT");
    command.arg("FLUSH");
    let () = command.query_async(redis).await.unwrap();
}
