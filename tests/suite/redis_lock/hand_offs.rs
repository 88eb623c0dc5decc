//! A lock that is handed over, and the word of it that comes late, or not at all.

use super::kit::*;
use crate::support::{Wire, connection_to, docker_shared, own_redis, redis_address};
use fencepost::model::WaitPolicy;
use fencing_lock::{LockClient, LockError, LockProblem, RedisSettings, ReleaseOutcome};
use redis::AsyncCommands;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// An answer that the wire holds back is waited for.
fn patient() -> RedisSettings {
    RedisSettings {
        response_timeout: LONG,
        ..waiting_by(WaitPolicy::Queue)
    }
}

fn queue(ttl: Duration) -> LockClient {
    locks_at(&redis_address(), waiting_by(WaitPolicy::Queue), ttl).0
}

/// Everything that was sent before on the connection of this client has been answered then.
async fn answered(locks: &LockClient) {
    let lease = locks.try_acquire(&unique_key()).await.unwrap();
    lease.expect("nobody else knows the key").release().await;
}

#[tokio::test]
async fn a_word_that_is_older_than_the_confirmation_grants_nothing() {
    let _turn = docker_shared();
    let (key, mut redis) = (unique_key(), redis_connection().await);
    let ttl = 6 * SECOND;
    let held = queue(LONG).acquire(&key, soon()).await.unwrap();
    let wire = Wire::to(redis_address()).await;
    let (locks, _) = locks_at(&wire.address, patient(), ttl);
    let waiter = tokio::spawn({
        let (locks, key) = (locks.clone(), key.clone());
        async move { locks.acquire(&key, Instant::now() + 2 * LONG).await }
    });
    until_in_line(&mut redis, &key, 1).await;
    answered(&locks).await;
    // The word of the hand-off does not arrive, and neither does the next confirmation.
    wire.hold();
    held.release().await;
    wire.until_a_request_is_held().await;
    // The time of the hand-off is over, and somebody else is granted the lock.
    let other = queue(LONG).acquire(&key, Instant::now() + LONG).await;
    let other = other.unwrap();
    // The confirmation arrives, then the old word, then the answer to the confirmation.
    wire.let_requests_go();
    until_in_line(&mut redis, &key, 1).await;
    wire.let_go();
    answered(&locks).await;
    assert!(!waiter.is_finished(), "somebody else holds the lock");
    let token = other.fence();
    other.release().await;
    let lease = timeout(LONG, waiter).await.expect("its turn").unwrap();
    let lease = lease.unwrap();
    assert!(lease.fence() > token);
    assert_eq!(holder(&key).await.as_deref(), Some(lease.owner()));
}

#[tokio::test]
async fn a_waiter_whose_word_was_lost_comes_back_to_its_lock() {
    let _turn = docker_shared();
    let (key, mut redis) = (unique_key(), redis_connection().await);
    let held = queue(LONG).acquire(&key, soon()).await.unwrap();
    let wire = Wire::to(redis_address()).await;
    let (locks, _) = locks_at(&wire.address, waiting_by(WaitPolicy::Queue), LONG);
    let waiter = tokio::spawn({
        let (locks, key) = (locks.clone(), key.clone());
        // Whoever waits for its own leftover waits for longer.
        async move { locks.acquire(&key, Instant::now() + LONG / 2).await }
    });
    until_in_line(&mut redis, &key, 1).await;
    answered(&locks).await;
    wire.hold();
    let token = held.fence();
    held.release().await;
    // The connection dies with the word in it, and the next one is refused.
    wire.refuse(true);
    wire.cut();
    wire.until_refused().await;
    wire.refuse(false);
    let lease = timeout(LONG, waiter).await.expect("a deadline").unwrap();
    let lease = lease.unwrap();
    assert_eq!(lease.fence().0, token.0 + 1, "the lock that it was handed");
    lease.release().await;
    until_nothing_left(&mut redis, &key).await;
}

#[tokio::test]
async fn a_waiter_hears_of_a_release_that_nobody_waits_for_any_more() {
    let _turn = docker_shared();
    let wire = Wire::to(redis_address()).await;
    for answer_comes_late in [false, true] {
        let (key, mut redis) = (unique_key(), redis_connection().await);
        // Both use one connection, so the answer to the release is the word for the waiter.
        let (locks, _) = locks_at(&wire.address, waiting_by(WaitPolicy::Queue), LONG);
        let held = locks.acquire(&key, soon()).await.unwrap();
        let waiter = tokio::spawn({
            let (locks, key) = (locks.clone(), key.clone());
            async move { locks.acquire(&key, Instant::now() + LONG).await }
        });
        until_in_line(&mut redis, &key, 1).await;
        answered(&locks).await;
        wire.hold();
        let releasing = tokio::spawn(held.release());
        wire.until_a_request_is_held().await;
        if answer_comes_late {
            releasing.await.unwrap();
        } else {
            releasing.abort();
            let _ = releasing.await;
        }
        wire.let_go();
        let let_go_at = Instant::now();
        let lease = timeout(LONG, waiter).await.expect("its turn").unwrap();
        // It would ask by itself after five seconds.
        assert!(let_go_at.elapsed() < 3 * SECOND, "{answer_comes_late}");
        lease.unwrap().release().await;
        until_nothing_left(&mut redis, &key).await;
    }
}

#[tokio::test]
async fn a_waiter_whose_word_was_lost_in_the_answer_to_a_release_comes_back() {
    let _turn = docker_shared();
    let (key, mut redis) = (unique_key(), redis_connection().await);
    let wire = Wire::to(redis_address()).await;
    let (locks, _) = locks_at(&wire.address, waiting_by(WaitPolicy::Queue), LONG);
    let held = locks.acquire(&key, soon()).await.unwrap();
    let waiter = tokio::spawn({
        let (locks, key) = (locks.clone(), key.clone());
        async move { locks.acquire(&key, Instant::now() + LONG / 2).await }
    });
    until_in_line(&mut redis, &key, 1).await;
    answered(&locks).await;
    wire.hold();
    let token = held.fence();
    let releasing = tokio::spawn(held.release());
    wire.until_a_request_is_held().await;
    // The release arrives, and the connection dies with the answer in it.
    wire.cut();
    let lease = timeout(LONG, waiter).await.expect("its turn").unwrap();
    let lease = lease.unwrap();
    assert_eq!(lease.fence().0, token.0 + 1, "the lock that it was handed");
    assert_ne!(releasing.await.unwrap(), ReleaseOutcome::Expired);
    lease.release().await;
    until_nothing_left(&mut redis, &key).await;
}

#[tokio::test]
async fn a_waiter_is_told_that_nobody_answered() {
    let _turn = docker_shared();
    let server = own_redis();
    let key = unique_key();
    let held = locks_at(&server.address, waiting_by(WaitPolicy::Queue), LONG).0;
    let _held = held.acquire(&key, soon()).await.unwrap();
    let settings = RedisSettings {
        response_timeout: SECOND / 2,
        // The wait ends while its undo still connects.
        connect_timeout: LONG,
        ..waiting_by(WaitPolicy::Queue)
    };
    let (locks, _) = locks_at(&server.address, settings, 4 * SECOND);
    let waiter = tokio::spawn({
        let key = key.clone();
        async move { locks.acquire(&key, Instant::now() + 12 * SECOND).await }
    });
    until_in_line(&mut connection_to(&server.address).await, &key, 1).await;
    server.freeze();
    let error: LockError = waiter.await.unwrap().unwrap_err();
    let LockProblem::Timeout { last, .. } = &error.problem else {
        panic!("{error}");
    };
    assert!(last.is_some(), "{error}");
    server.thaw();
}

#[tokio::test]
async fn the_dead_do_not_fill_the_line() {
    let _turn = docker_shared();
    let (key, mut redis) = (unique_key(), redis_connection().await);
    let settings = RedisSettings {
        queue_max: 3,
        ..waiting_by(WaitPolicy::Queue)
    };
    let (locks, _) = locks_at(&redis_address(), settings, LONG);
    let held = locks.acquire(&key, soon()).await.unwrap();
    let wait = || {
        let (locks, key) = (locks.clone(), key.clone());
        tokio::spawn(async move { locks.acquire(&key, Instant::now() + LONG).await })
    };
    let first = wait();
    until_in_line(&mut redis, &key, 1).await;
    // Their time ended long ago, and the first keeps the line alive.
    for dead in ["dead-1", "dead-2"] {
        let () = redis.rpush(format!("line:{{{key}}}"), dead).await.unwrap();
        let waiters = format!("waiters:{{{key}}}");
        let () = redis.hset(waiters, dead, "1000 1 nowhere").await.unwrap();
    }
    let second = wait();
    let second_stands = async {
        let line = format!("line:{{{key}}}");
        while redis.lrange::<_, Vec<String>>(&line, 0, -1).await.unwrap()[1..]
            == ["dead-1", "dead-2"]
        {
            assert!(!second.is_finished(), "refused because of the dead");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(LONG, second_stands)
        .await
        .expect("it stands in line");
    until_in_line(&mut redis, &key, 2).await;
    held.release().await;
    for waiter in [first, second] {
        let lease = timeout(LONG, waiter).await.expect("its turn").unwrap();
        lease.unwrap().release().await;
    }
    until_nothing_left(&mut redis, &key).await;
}

#[tokio::test]
async fn a_waiter_keeps_a_place_when_one_key_of_the_line_is_evicted() {
    let _turn = docker_shared();
    for evicted in ["line", "waiters"] {
        let (key, mut redis) = (unique_key(), redis_connection().await);
        let held = queue(LONG).acquire(&key, soon()).await.unwrap();
        let waiter = tokio::spawn({
            let key = key.clone();
            async move { queue(2 * SECOND).acquire(&key, Instant::now() + LONG).await }
        });
        until_in_line(&mut redis, &key, 1).await;
        let () = redis.del(format!("{evicted}:{{{key}}}")).await.unwrap();
        let known = async {
            while redis
                .hlen::<_, usize>(format!("waiters:{{{key}}}"))
                .await
                .unwrap()
                != 1
            {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(LONG, known).await.expect("it confirms");
        until_in_line(&mut redis, &key, 1).await;
        held.release().await;
        let lease = timeout(LONG, waiter).await.expect("its turn").unwrap();
        lease.unwrap().release().await;
        until_nothing_left(&mut redis, &key).await;
    }
}
