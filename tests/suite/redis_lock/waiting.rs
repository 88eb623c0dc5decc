//! Waiting for a lock that is held, in each of the three ways.

use super::kit::*;
use crate::support::{contenders_exclude_each_other, docker_shared, redis_address};
use fencepost::model::{FencingToken, WaitPolicy};
use fencing_lock::LockProblem;
use fencing_lock::ReleaseOutcome;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

#[tokio::test]
async fn contenders_exclude_each_other_and_all_get_through() {
    let _turn = docker_shared();
    for wait in WaitPolicy::ALL {
        let key = unique_key();
        let client = |_| locks_at(&redis_address(), waiting_by(wait), LONG).0;
        contenders_exclude_each_other(&key, (0..10).map(client).collect()).await;
        until_nothing_left(&mut redis_connection().await, &key).await;
    }
}

#[tokio::test]
async fn five_thousand_grants_have_growing_tokens() {
    let _turn = docker_shared();
    const KEYS: usize = 25;
    const CONTENDERS: usize = 2;
    const GRANTS: usize = 5_000;
    for wait in WaitPolicy::ALL {
        let (locks, metrics) = locks_at(&redis_address(), waiting_by(wait), LONG);
        // Of each key, in the order in which they were held.
        let granted: Arc<[Mutex<Vec<FencingToken>>; KEYS]> = Arc::default();
        let mut contenders = JoinSet::new();
        for contender in 0..KEYS * CONTENDERS {
            let (locks, granted) = (locks.clone(), granted.clone());
            contenders.spawn(async move {
                let number = contender % KEYS;
                let key = format!("{wait}-{number}-{}", std::process::id());
                for _ in 0..GRANTS / KEYS / CONTENDERS {
                    let lease = locks.acquire(&key, Instant::now() + LONG).await.unwrap();
                    granted[number].lock().unwrap().push(lease.fence());
                    assert_eq!(lease.release().await, ReleaseOutcome::Released);
                }
            });
        }
        contenders.join_all().await;
        for tokens in granted.iter().map(|tokens| tokens.lock().unwrap()) {
            assert_eq!(tokens.len(), GRANTS / KEYS);
            assert!(tokens.is_sorted_by(|a, b| a < b), "{wait}: {tokens:?}");
        }
        assert_eq!(metrics.acquire_successes.get(), GRANTS as u64);
        assert_eq!(metrics.leases_held.get(), 0);
        assert_eq!(metrics.queue_length.get(), 0);
    }
}

#[tokio::test]
async fn a_busy_lock_is_not_granted_and_a_wait_ends_at_its_deadline() {
    let _turn = docker_shared();
    for wait in WaitPolicy::ALL {
        let (locks, metrics) = locks_at(&redis_address(), waiting_by(wait), LONG);
        let key = unique_key();
        let lease = locks.acquire(&key, soon()).await.unwrap();
        assert!(locks.try_acquire(&key).await.unwrap().is_none());
        let started_at = Instant::now();
        let deadline = started_at + Duration::from_millis(200);
        let error = locks.acquire(&key, deadline).await.unwrap_err();
        assert!(
            matches!(error.problem, LockProblem::Timeout { last: None, .. }),
            "{error}"
        );
        // Long before the TTL of the one who holds it.
        assert!((deadline - started_at..LONG / 4).contains(&started_at.elapsed()));
        assert_eq!(metrics.acquire_timeouts.get(), 1);
        lease.release().await;
        until_nothing_left(&mut redis_connection().await, &key).await;
    }
}

#[tokio::test]
async fn a_hold_that_runs_out_goes_to_the_one_who_waits() {
    let _turn = docker_shared();
    for wait in WaitPolicy::ALL {
        let key = unique_key();
        // Nobody renews or releases this one: its holder is dead.
        let mut redis = redis_connection().await;
        let ttl = Duration::from_millis(300);
        let mut hold = redis::cmd("SET");
        hold.arg(format!("lock:{{{key}}}")).arg("dead").arg("PX");
        let () = hold.arg(300).query_async(&mut redis).await.unwrap();
        let held_from = Instant::now();
        let (locks, _) = locks_at(&redis_address(), waiting_by(wait), LONG);
        let lease = locks.acquire(&key, soon()).await.unwrap();
        let late = held_from.elapsed().saturating_sub(ttl);
        // Whoever missed the end would wait for a TTL of its own.
        assert!(late < LONG / 4, "{wait}: {late:?}");
        lease.release().await;
    }
}
