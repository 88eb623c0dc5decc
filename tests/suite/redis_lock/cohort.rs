//! Waiters of one process that pass the lock on among themselves.

use super::kit::*;
use crate::support::{docker_shared, redis_address};
use fencepost::model::WaitPolicy;
use fencing_lock::{
    CohortSettings, Lease, LockClient, LockProblem, RedisSettings, ReleaseOutcome, RenewError,
};
use redis::AsyncCommands;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};

/// A process of its own.
fn process(hand_offs_max: u32, ttl: Duration) -> LockClient {
    let settings = RedisSettings {
        cohort: Some(CohortSettings {
            hand_offs_max,
            within: LONG,
        }),
        ..waiting_by(WaitPolicy::Queue)
    };
    locks_at(&redis_address(), settings, ttl).0
}

fn pair(lease: &Lease) -> (u64, u64) {
    (lease.fence().0, lease.seq())
}

fn waiter(locks: &LockClient, key: &str) -> JoinHandle<Lease> {
    let (locks, key) = (locks.clone(), key.to_owned());
    tokio::spawn(async move { locks.acquire(&key, Instant::now() + LONG).await.unwrap() })
}

#[tokio::test(flavor = "multi_thread")]
async fn one_holds_at_a_time_and_the_pairs_of_token_and_seq_grow() {
    let _turn = docker_shared();
    let (key, held) = (unique_key(), Arc::new(AtomicBool::new(false)));
    let pairs: Arc<Mutex<Vec<(u64, u64)>>> = Arc::default();
    let mut tasks = JoinSet::new();
    for locks in [process(3, LONG), process(3, LONG)] {
        for _ in 0..10 {
            let (locks, key) = (locks.clone(), key.clone());
            let (held, pairs) = (held.clone(), pairs.clone());
            tasks.spawn(async move {
                for _ in 0..10 {
                    let lease = locks.acquire(&key, Instant::now() + LONG).await.unwrap();
                    assert!(!held.swap(true, Ordering::SeqCst), "two hold it");
                    pairs.lock().unwrap().push(pair(&lease));
                    tokio::task::yield_now().await;
                    held.store(false, Ordering::SeqCst);
                    assert_eq!(lease.release().await, ReleaseOutcome::Released);
                }
            });
        }
    }
    tasks.join_all().await;
    let pairs = pairs.lock().unwrap().clone();
    assert_eq!(pairs.len(), 200);
    assert!(pairs.is_sorted_by(|a, b| a < b), "{pairs:?}");
    let tokens = pairs.chunk_by(|a, b| a.0 == b.0);
    let longest = tokens.map(<[_]>::len).max().unwrap();
    assert!((2..=4).contains(&longest), "passed on {longest} times");
    until_nothing_left(&mut redis_connection().await, &key).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiter_of_another_process_waits_for_so_many_hand_offs_and_no_more() {
    let _turn = docker_shared();
    let (key, mut redis) = (unique_key(), redis_connection().await);
    let (many, other) = (process(5, LONG), process(5, LONG));
    let (holds, over) = (
        Arc::new(AtomicUsize::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let mut tasks = JoinSet::new();
    for _ in 0..10 {
        let (many, key, holds, over) = (many.clone(), key.clone(), holds.clone(), over.clone());
        tasks.spawn(async move {
            while !over.load(Ordering::SeqCst) {
                let lease = many.acquire(&key, Instant::now() + LONG).await.unwrap();
                holds.fetch_add(1, Ordering::SeqCst);
                sleep(Duration::from_millis(50)).await;
                lease.release().await;
            }
        });
    }
    for _ in 0..3 {
        let waiting = waiter(&other, &key);
        // Only one of the others stands in the line, behind the one who holds the lock.
        let line = format!("line:{{{key}}}");
        while redis.llen::<_, usize>(&line).await.unwrap() == 0 {
            sleep(Duration::from_millis(1)).await;
        }
        let before = holds.load(Ordering::SeqCst);
        let lease = timeout(LONG, waiting).await.unwrap().unwrap();
        // What is left of the present grant, and one more grant if it came first.
        let waited = holds.load(Ordering::SeqCst) - before;
        assert!(waited <= 2 * 6, "{waited} hand-offs");
        lease.release().await;
    }
    over.store(true, Ordering::SeqCst);
    tasks.join_all().await;
}

#[tokio::test]
async fn a_lost_grant_is_not_passed_on() {
    let _turn = docker_shared();
    let (key, mut redis) = (unique_key(), redis_connection().await);
    let locks = process(100, LONG);
    let first = locks.acquire(&key, soon()).await.unwrap();
    let second = waiter(&locks, &key);
    let lock = format!("lock:{{{key}}}");
    let () = redis.del(&lock).await.unwrap();
    assert!(matches!(first.renew().await, Err(RenewError::Lost(_))));
    let lost = pair(&first);
    assert_ne!(first.release().await, ReleaseOutcome::Released);
    let second = timeout(5 * SECOND, second).await.unwrap().unwrap();
    assert_eq!(
        (pair(&second).0, second.seq()),
        (lost.0 + 1, 0),
        "another grant"
    );
    assert_eq!(holder(&key).await.as_deref(), Some(second.owner()));
    // Whoever is handed the lock has the grant's own deadline and can renew it.
    let third = waiter(&locks, &key);
    tokio::task::yield_now().await;
    let (owner, until) = (second.owner().to_owned(), second.deadline());
    second.release().await;
    let third = third.await.unwrap();
    assert_eq!((third.owner(), third.deadline()), (owner.as_str(), until));
    assert!(third.seq() > 0);
    third.renew().await.unwrap();
    assert!(third.deadline() > until);
    let () = redis.set(&lock, "another").await.unwrap();
    assert!(third.renew().await.is_err());
    assert!(third.is_lost());
}

#[tokio::test]
async fn a_waiter_that_is_cancelled_leaves_its_turn_to_the_next() {
    let _turn = docker_shared();
    let (key, mut redis) = (unique_key(), redis_connection().await);
    let locks = process(100, LONG);
    for cancelled_before_its_turn in [true, false] {
        let held = locks.acquire(&key, soon()).await.unwrap();
        let cancelled = waiter(&locks, &key);
        tokio::task::yield_now().await;
        let next = waiter(&locks, &key);
        tokio::task::yield_now().await;
        if cancelled_before_its_turn {
            cancelled.abort();
            held.release().await;
        } else {
            // On one thread, the waiter has its turn and does not run before the abort.
            held.release().await;
            cancelled.abort();
        }
        let lease = timeout(5 * SECOND, next).await.unwrap().unwrap();
        assert_eq!(lease.release().await, ReleaseOutcome::Released);
        until_nothing_left(&mut redis, &key).await;
    }
    // The last one leaves nothing at the server.
    let held = locks.acquire(&key, soon()).await.unwrap();
    let cancelled = waiter(&locks, &key);
    tokio::task::yield_now().await;
    held.release().await;
    cancelled.abort();
    until_nothing_left(&mut redis, &key).await;
    // Neither does the one who stands in the line for all, and the others go on.
    let elsewhere = process(1, LONG).acquire(&key, soon()).await.unwrap();
    let (standing, next) = (waiter(&locks, &key), waiter(&locks, &key));
    until_in_line(&mut redis, &key, 1).await;
    standing.abort();
    let _ = standing.await;
    elsewhere.release().await;
    let lease = timeout(5 * SECOND, next).await.unwrap().unwrap();
    lease.release().await;
    until_nothing_left(&mut redis, &key).await;
}

#[tokio::test]
async fn a_holder_that_keeps_the_lock_or_dies_with_it_blocks_it_for_its_ttl() {
    let _turn = docker_shared();
    let (key, ttl) = (unique_key(), 2 * SECOND);
    let locks = process(100, ttl);
    let kept = locks.acquire(&key, soon()).await.unwrap();
    let (here, elsewhere) = (waiter(&locks, &key), waiter(&process(1, ttl), &key));
    for waiter in [here, elsewhere] {
        let lease = timeout(4 * ttl, waiter)
            .await
            .expect("after its TTL")
            .unwrap();
        assert!(lease.fence() > kept.fence());
        lease.release().await;
    }
    assert_ne!(kept.release().await, ReleaseOutcome::Released);

    let dying = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let its_key = key.clone();
    let died = dying.spawn(async move {
        let locks = process(100, ttl);
        let lease = locks.acquire(&its_key, soon()).await.unwrap();
        let waiting = waiter(&locks, &its_key);
        std::mem::forget((lease, waiting));
    });
    died.await.unwrap();
    dying.shutdown_background();
    let lease = process(1, ttl)
        .acquire(&key, Instant::now() + 4 * ttl)
        .await;
    lease.expect("after its TTL").release().await;
}

#[tokio::test]
async fn a_cohort_that_is_full_says_so() {
    let _turn = docker_shared();
    let key = unique_key();
    let settings = RedisSettings {
        cohort: Some(CohortSettings {
            hand_offs_max: 9,
            within: LONG,
        }),
        queue_max: 1,
        ..waiting_by(WaitPolicy::Queue)
    };
    let locks = locks_at(&redis_address(), settings, LONG).0;
    let held = locks.acquire(&key, soon()).await.unwrap();
    let waiting = waiter(&locks, &key);
    tokio::task::yield_now().await;
    let error = locks.acquire(&key, soon()).await.unwrap_err();
    assert_eq!(error.problem, LockProblem::QueueFull { waiting: 1, max: 1 });
    held.release().await;
    waiting.await.unwrap().release().await;
}
