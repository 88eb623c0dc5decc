//! What a process counts about its locks.

use super::kit::*;
use crate::support::{docker_shared, redis_address};
use fencepost::model::WaitPolicy;
use fencing_lock::LockMetrics;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

#[tokio::test]
async fn a_lock_that_is_handed_over_is_held_from_then_on() {
    let _turn = docker_shared();
    let (key, mut redis) = (unique_key(), redis_connection().await);
    let (locks, metrics) = locks_at(&redis_address(), waiting_by(WaitPolicy::Queue), LONG);
    let (others, _) = locks_at(&redis_address(), waiting_by(WaitPolicy::Queue), LONG);
    let held = others.acquire(&key, soon()).await.unwrap();
    let waiter = tokio::spawn({
        let key = key.clone();
        async move { locks.acquire(&key, Instant::now() + LONG).await.unwrap() }
    });
    until_in_line(&mut redis, &key, 1).await;
    sleep_until(Instant::now() + SECOND / 2).await;
    let freed_at = Instant::now();
    held.release().await;
    waiter.await.unwrap().release().await;
    let longest = freed_at.elapsed().as_secs_f64();
    let counted = value(&metrics, "lock_held_seconds_sum").unwrap();
    assert!(counted <= longest, "{counted} s of {longest} s");
}

#[tokio::test]
async fn what_is_lost_or_released_is_not_held_any_more() {
    let _turn = docker_shared();
    let (locks, metrics) = locks(Duration::from_millis(50));
    let lease = locks.acquire(&unique_key(), soon()).await.unwrap();
    sleep_until(lease.deadline()).await;
    assert_eq!(value(&metrics, "lock_leases_held"), Some(0.0));
    assert_eq!(value(&metrics, "lock_current_token"), Some(0.0));
    let (locks, metrics) = super::kit::locks(LONG);
    let lease = locks.acquire(&unique_key(), soon()).await.unwrap();
    assert_eq!(value(&metrics, "lock_current_token"), Some(1.0));
    assert!(value(&metrics, "lock_token_age_seconds").is_some());
    lease.release().await;
    assert_eq!(value(&metrics, "lock_current_token"), Some(0.0));
    assert_eq!(value(&metrics, "lock_token_age_seconds"), None);
}

#[tokio::test]
async fn only_what_was_sent_is_counted_and_all_of_it() {
    let _turn = docker_shared();
    for wait in WaitPolicy::ALL {
        let (nowhere, metrics) = locks_at(NOBODY, waiting_by(wait), LONG);
        nowhere.try_acquire("k").await.unwrap_err();
        assert_eq!(metrics.acquire_attempts.get(), 0, "{wait}");
        assert_eq!(metrics.requests.get(), 0, "{wait}");
    }
    let server = crate::support::own_redis();
    let (locks, metrics) = locks_at(&server.address, waiting_by(WaitPolicy::Spin), LONG);
    let lease = locks.acquire(&unique_key(), soon()).await.unwrap();
    // By hash, which a new server does not know, and then whole.
    assert_eq!(metrics.requests.get(), 2);
    lease.release().await;
    assert_eq!(metrics.requests.get(), 4);
    assert_eq!(metrics.acquire_attempts.get(), 1);
}

#[tokio::test]
async fn nobody_believes_in_a_fraction_that_the_server_does_not_count() {
    let _turn = docker_shared();
    let (locks, _) = locks(Duration::from_micros(1_500_900));
    let lease = locks.acquire(&unique_key(), soon()).await.unwrap();
    let believed = lease.deadline() - lease.acquired_at();
    assert_eq!(believed, Duration::from_millis(1_500));
    lease.release().await;
}

fn value(metrics: &LockMetrics, name: &str) -> Option<f64> {
    let mut registry = Registry::default();
    metrics.register(&mut registry);
    let mut page = String::new();
    encode(&mut page, &registry).unwrap();
    let mut lines = page.lines().filter_map(|line| line.split_once(' '));
    let (_, value) = lines.find(|(found, _)| *found == name)?;
    Some(value.parse().unwrap())
}
