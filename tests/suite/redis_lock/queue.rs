//! The fair line: its order, its bound, and that nobody passes it.

use super::kit::*;
use crate::support::{docker_shared, redis_address};
use fencepost::model::{FenceFloor, WaitPolicy};
use fencing_lock::ReleaseOutcome;
use fencing_lock::{LockClient, LockProblem, RedisSettings};
use redis::AsyncCommands;
use std::sync::{Arc, Mutex};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

fn queue() -> LockClient {
    locks_at(&redis_address(), waiting_by(WaitPolicy::Queue), LONG).0
}

#[tokio::test]
async fn fifty_waiters_get_the_lock_in_the_order_in_which_they_came() {
    let _turn = docker_shared();
    let key = unique_key();
    let mut redis = redis_connection().await;
    // As if of five processes.
    let clients: Vec<LockClient> = (0..5).map(|_| queue()).collect();
    let first = clients[0].acquire(&key, soon()).await.unwrap();
    let order: Arc<Mutex<Vec<usize>>> = Arc::default();
    let mut waiters = JoinSet::new();
    for n in 0..50 {
        let (locks, wanted, order) = (clients[n % 5].clone(), key.clone(), order.clone());
        waiters.spawn(async move {
            let lease = locks.acquire(&wanted, Instant::now() + LONG).await.unwrap();
            order.lock().unwrap().push(n);
            assert_eq!(lease.release().await, ReleaseOutcome::Released);
        });
        until_in_line(&mut redis, &key, n + 1).await;
    }
    assert_eq!(first.release().await, ReleaseOutcome::Released);
    timeout(10 * SECOND, waiters.join_all()).await.unwrap();
    assert!(order.lock().unwrap().iter().copied().eq(0..50));
    until_nothing_left(&mut redis, &key).await;
}

#[tokio::test]
async fn a_line_that_is_full_says_so_at_once() {
    let _turn = docker_shared();
    let key = unique_key();
    let mut redis = redis_connection().await;
    let settings = RedisSettings {
        queue_max: 2,
        ..waiting_by(WaitPolicy::Queue)
    };
    let (locks, _) = locks_at(&redis_address(), settings, LONG);
    let held = locks.acquire(&key, soon()).await.unwrap();
    let mut waiters = JoinSet::new();
    for _ in 0..2 {
        let (locks, key) = (locks.clone(), key.clone());
        waiters.spawn(async move { locks.acquire(&key, soon()).await.map(|lease| lease.fence()) });
    }
    until_in_line(&mut redis, &key, 2).await;
    let refused = timeout(SECOND, locks.acquire(&key, Instant::now() + LONG)).await;
    let error = refused.expect("not at the deadline").unwrap_err();
    assert_eq!(error.problem, LockProblem::QueueFull { waiting: 2, max: 2 });
    assert_eq!((error.backend, &error.key), ("redis", &key));
    until_in_line(&mut redis, &key, 2).await;
    held.release().await;
    for waited in waiters.join_all().await {
        waited.expect("those who waited lost nothing");
    }
    until_nothing_left(&mut redis, &key).await;
}

#[tokio::test]
async fn a_try_does_not_pass_those_who_wait() {
    let _turn = docker_shared();
    let key = unique_key();
    let mut redis = redis_connection().await;
    let locks = queue();
    let _held = locks.acquire(&key, soon()).await.unwrap();
    let waiter = tokio::spawn({
        let (locks, key) = (queue(), key.clone());
        async move { locks.acquire(&key, soon()).await.unwrap() }
    });
    until_in_line(&mut redis, &key, 1).await;
    // Freed without a word, as by its expiry.
    let () = redis.del(format!("lock:{{{key}}}")).await.unwrap();
    assert!(locks.try_acquire(&key).await.unwrap().is_none());
    let lease = timeout(SECOND, waiter).await.expect("woken by the try");
    let lease = lease.unwrap();
    assert_eq!(holder(&key).await.as_deref(), Some(lease.owner()));
}

#[tokio::test]
async fn a_waiter_that_is_handed_the_lock_gets_the_token_of_the_counter() {
    let _turn = docker_shared();
    for fence_floor in FenceFloor::ALL {
        let key = unique_key();
        let mut redis = redis_connection().await;
        let settings = RedisSettings {
            fence_floor,
            ..waiting_by(WaitPolicy::Queue)
        };
        let (locks, _) = locks_at(&redis_address(), settings, LONG);
        let first = locks.acquire(&key, soon()).await.unwrap();
        let waiter = tokio::spawn({
            let (locks, key) = (locks.clone(), key.clone());
            async move { locks.acquire(&key, soon()).await.unwrap() }
        });
        until_in_line(&mut redis, &key, 1).await;
        let token = first.fence();
        first.release().await;
        let second = waiter.await.unwrap();
        assert!(second.fence() > token);
        let counter: u64 = redis.get(format!("fence:{{{key}}}")).await.unwrap();
        assert_eq!(second.fence().0, counter, "{fence_floor}");
        // Its belief counts from when it was alive for certain, and it can renew.
        assert!(second.deadline() <= Instant::now() + second.ttl());
        second.renew().await.unwrap();
    }
}
