//! What the tests of the Redis lock share.

use crate::support::redis_address;
use fencepost::dlock::{LockClient, LockMetrics, LockSettings, RedisBackend, RedisSettings};
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

pub fn soon() -> Instant {
    Instant::now() + 5 * SECOND
}

pub fn unique_key() -> String {
    format!("test-{}", Uuid::new_v4())
}

pub async fn redis_connection() -> MultiplexedConnection {
    let client = redis::Client::open(format!("redis://{}", redis_address())).unwrap();
    client.get_multiplexed_async_connection().await.unwrap()
}

/// Who holds the key, asked past the library.
pub async fn holder(key: &str) -> Option<String> {
    let mut redis = redis_connection().await;
    redis.get(format!("lock:{{{key}}}")).await.unwrap()
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
