//! What tokens rest on: the counter's memory, and the floor below it.

use super::kit::*;
use crate::support::{
    connection_to, docker_shared, own_durable_redis, own_redis, tokens_only_grow,
};
use fencepost::model::{FenceFloor, FencingToken, WaitPolicy};
use fencing_lock::{LockClient, RedisSettings};
use redis::AsyncCommands;
use redis::aio::MultiplexedConnection;
use std::sync::Arc;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

#[tokio::test]
async fn a_server_that_forgets_everything_sets_tokens_back_unless_there_is_a_floor() {
    let _turn = docker_shared();
    let server = own_redis();
    let mut redis = connection_to(&server.address).await;
    for wait in WaitPolicy::ALL {
        for fence_floor in FenceFloor::ALL {
            let settings = RedisSettings {
                fence_floor,
                ..waiting_by(wait)
            };
            let (locks, _) = locks_at(&server.address, settings, LONG);
            let key = unique_key();
            next(&locks, &key).await;
            let before = next(&locks, &key).await;
            let () = redis::cmd("FLUSHALL")
                .query_async(&mut redis)
                .await
                .unwrap();
            let after = next(&locks, &key).await;
            match fence_floor {
                FenceFloor::None => {
                    assert_eq!((before, after), (FencingToken(2), FencingToken(1)));
                }
                FenceFloor::ServerClock => assert!(before < after, "{before} {after}"),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_tokens_only_grow_while_a_server_with_an_append_only_file_is_restarted() {
    let _turn = docker_shared();
    let server = Arc::new(own_durable_redis());
    let clients =
        WaitPolicy::ALL.map(|wait| locks_at(&server.address, waiting_by(wait), 2 * SECOND).0);
    let restart = |_| -> Box<dyn FnOnce() + Send> {
        let server = server.clone();
        Box::new(move || {
            server.stop();
            server.start();
        })
    };
    // On each key the three ways to wait take turns: they share the counter.
    tokens_only_grow(clients.into(), (0..3).map(restart).collect()).await;
}

#[tokio::test]
async fn only_a_counter_with_a_floor_expires_and_not_before_the_clock_is_above_it() {
    let _turn = docker_shared();
    let server = own_redis();
    let mut redis = connection_to(&server.address).await;
    let with = |fence_floor| {
        let settings = RedisSettings {
            fence_floor,
            ..RedisSettings::default()
        };
        locks_at(&server.address, settings, LONG).0
    };
    let (plain, floored) = (with(FenceFloor::None), with(FenceFloor::ServerClock));
    let key = unique_key();
    next(&plain, &key).await;
    assert_eq!(kept_ms(&mut redis, &key).await, -1);

    let first = next(&floored, &key).await;
    let kept = kept_ms(&mut redis, &key).await;
    assert!((DAY_MS..=2 * DAY_MS).contains(&kept), "{kept}");
    let counter: String = redis.get(format!("fence:{{{key}}}")).await.unwrap();
    assert_eq!(counter, first.to_string(), "all digits, no exponent");

    // A counter that is an hour ahead of the clock, which was set back.
    let ahead = first.0 + 3_600_000_000;
    let () = redis.set(format!("fence:{{{key}}}"), ahead).await.unwrap();
    assert_eq!(next(&floored, &key).await, FencingToken(ahead + 1));
    let kept_longer = kept_ms(&mut redis, &key).await;
    let hour_ms = 3_600_000;
    assert!(kept_longer > kept + hour_ms - 60_000, "{kept_longer}");

    // Without the floor, its expiry is taken off again.
    assert_eq!(next(&plain, &key).await, FencingToken(ahead + 2));
    assert_eq!(kept_ms(&mut redis, &key).await, -1);
}

async fn next(locks: &LockClient, key: &str) -> FencingToken {
    let lease = locks.acquire(key, soon()).await.unwrap();
    let token = lease.fence();
    lease.release().await;
    token
}

async fn kept_ms(redis: &mut MultiplexedConnection, key: &str) -> i64 {
    redis.pttl(format!("fence:{{{key}}}")).await.unwrap()
}
