//! What the tests of the Redis lock share.

use crate::support::{connection_to, redis_address};
use fencepost::model::WaitPolicy;
use fencing_lock::{LockClient, LockMetrics, LockSettings, RedisBackend, RedisSettings};
use redis::AsyncCommands;
use redis::aio::MultiplexedConnection;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

pub const SECOND: Duration = Duration::from_secs(1);
/// So long that a key which is gone was released and did not run out.
pub const LONG: Duration = Duration::from_secs(60);
/// Nothing ever listens on this port of the reserved ones.
pub const NOBODY: &str = "127.0.0.1:1";

pub fn locks(ttl: Duration) -> (LockClient, LockMetrics) {
    let metrics = LockMetrics::default();
    let settings = LockSettings { ttl, seed: 1 };
    let client = LockClient::new(backend(&redis_address()), settings, metrics.clone());
    (client.unwrap(), metrics)
}

pub fn backend(address: &str) -> Arc<RedisBackend> {
    Arc::new(RedisBackend::new(address, RedisSettings::default()).unwrap())
}

pub fn waiting_by(wait: WaitPolicy) -> RedisSettings {
    RedisSettings {
        wait,
        ..RedisSettings::default()
    }
}

/// A client of its own, as another process would have one.
pub fn locks_at(address: &str, redis: RedisSettings, ttl: Duration) -> (LockClient, LockMetrics) {
    let metrics = LockMetrics::default();
    let settings = LockSettings { ttl, seed: 1 };
    let backend = Arc::new(RedisBackend::new(address, redis).unwrap());
    let client = LockClient::new(backend, settings, metrics.clone());
    (client.unwrap(), metrics)
}

pub fn soon() -> Instant {
    Instant::now() + 5 * SECOND
}

pub fn unique_key() -> String {
    format!("test-{}", Uuid::new_v4())
}

pub async fn redis_connection() -> MultiplexedConnection {
    connection_to(&redis_address()).await
}

/// Who holds the key, asked past the library.
pub async fn holder(key: &str) -> Option<String> {
    let mut redis = redis_connection().await;
    redis.get(format!("lock:{{{key}}}")).await.unwrap()
}

/// Returns when so many stand in the line for the key.
pub async fn until_in_line(redis: &mut MultiplexedConnection, key: &str, waiting: usize) {
    let in_line = async {
        loop {
            let length: usize = redis.llen(format!("line:{{{key}}}")).await.unwrap();
            if length == waiting {
                return;
            }
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(5 * SECOND, in_line).await.expect("a line forms");
}

/// Returns when nothing about the key is left on the server but its counter, and the marks of
/// tries that were given up. Fails where something stays: no TTL here is short enough to remove it.
pub async fn until_nothing_left(redis: &mut MultiplexedConnection, key: &str) {
    let mut left: Vec<String> = Vec::new();
    for _ in 0..500 {
        left = redis.keys(format!("*{key}*")).await.unwrap();
        left.retain(|name| !name.starts_with("fence:") && !name.starts_with("gone:"));
        if left.is_empty() {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("left behind: {left:?}");
}

/// Returns when the server counts so many subscribers of a channel.
pub async fn until_subscribers(redis: &mut MultiplexedConnection, channel: &str, count: usize) {
    let counted = async {
        loop {
            let mut ask = redis::cmd("PUBSUB");
            ask.arg("NUMSUB").arg(channel);
            let (_, now): (String, usize) = ask.query_async(redis).await.unwrap();
            if now == count {
                return;
            }
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(5 * SECOND, counted).await.expect("subscribers");
}

/// Fails where a key stays behind: no TTL here is short enough to free it.
pub async fn until_free(key: &str) {
    let free = async {
        while holder(key).await.is_some() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(5 * SECOND, free).await.expect("no key stays");
}
