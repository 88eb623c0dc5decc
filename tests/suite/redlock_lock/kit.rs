//! What the tests of the Redlock lock share.

use crate::support::{connection_to, redlock_servers};
use fencing_lock::{
    LockClient, LockMetrics, LockSettings, RedlockBackend, RedlockSettings, TokenScheme,
};
use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue, cmd};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

pub const SECOND: Duration = Duration::from_secs(1);
/// So long that a key which is gone was released and did not run out.
pub const LONG: Duration = Duration::from_secs(60);
pub const QUORUM: usize = 3;

pub fn locks(ttl: Duration) -> LockClient {
    locks_of(&addresses(), ttl, TokenScheme::Strict)
}

/// With connections and proposals of its own.
pub fn locks_of(servers: &[String], ttl: Duration, tokens: TokenScheme) -> LockClient {
    let settings = RedlockSettings {
        tokens,
        ..RedlockSettings::default()
    };
    let backend = Arc::new(RedlockBackend::new(servers, settings).unwrap());
    let settings = LockSettings { ttl, seed: 1 };
    LockClient::new(backend, settings, LockMetrics::default()).unwrap()
}

pub fn addresses() -> Vec<String> {
    let servers = redlock_servers().iter();
    servers.map(|server| server.address.clone()).collect()
}

pub fn soon() -> Instant {
    Instant::now() + 5 * SECOND
}

pub fn unique_key() -> String {
    format!("test-{}", Uuid::new_v4())
}

pub fn lock_key(key: &str) -> String {
    format!("lock:{{{key}}}")
}

pub fn fence_key(key: &str) -> String {
    format!("fence:{{{key}}}")
}

/// The nodes themselves, past the library. All of them have to be up.
pub struct Nodes(Vec<MultiplexedConnection>);

impl Nodes {
    pub async fn connect() -> Nodes {
        let mut nodes = Vec::new();
        for address in addresses() {
            nodes.push(connection_to(&address).await);
        }
        Nodes(nodes)
    }

    pub async fn ask<T: FromRedisValue>(&self, node: usize, words: &[&str]) -> T {
        let mut command = cmd(words[0]);
        command.arg(&words[1..]);
        command
            .query_async(&mut self.0[node].clone())
            .await
            .unwrap()
    }

    pub async fn ask_all<T: FromRedisValue>(&self, words: &[&str]) -> Vec<T> {
        let mut answers = Vec::new();
        for node in 0..self.0.len() {
            answers.push(self.ask(node, words).await);
        }
        answers
    }

    pub async fn holders(&self, key: &str) -> Vec<Option<String>> {
        self.ask_all(&["GET", &lock_key(key)]).await
    }

    pub async fn held_by(&self, key: &str, owner: &str) -> usize {
        let holders = self.holders(key).await;
        holders
            .iter()
            .filter(|h| h.as_deref() == Some(owner))
            .count()
    }

    /// Somebody else holds the lock there.
    pub async fn block(&self, node: usize, key: &str) {
        let () = self
            .ask(node, &["SET", &lock_key(key), "another", "PX", "60000"])
            .await;
    }

    pub async fn unblock(&self, node: usize, key: &str) {
        let () = self.ask(node, &["DEL", &lock_key(key)]).await;
    }

    /// Fails where a lock stays behind on any node: no TTL here is short enough
    /// to free it.
    pub async fn until_free(&self, keys: &str) {
        let pattern = lock_key(keys);
        let mut left = Vec::new();
        let free = async {
            loop {
                let found: Vec<Vec<String>> = self.ask_all(&["KEYS", &pattern]).await;
                left = found.concat();
                if left.is_empty() {
                    return;
                }
                sleep(Duration::from_millis(10)).await;
            }
        };
        let in_time = timeout(5 * SECOND, free).await;
        assert!(in_time.is_ok(), "left behind: {left:?}");
    }
}
