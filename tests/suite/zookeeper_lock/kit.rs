//! What the tests of the locks in a ZooKeeper share.

use crate::support::zookeeper_servers;
use fencing_lock::servers::ZOOKEEPER_LOCKS;
use fencing_lock::{
    Lease, LockClient, LockError, LockMetrics, LockSettings, ZookeeperBackend, ZookeeperSettings,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;
use zookeeper_client::{Client, Stat};

pub const SECOND: Duration = Duration::from_secs(1);
/// So long that a lock which is free was released and did not run out.
pub const LONG: Duration = Duration::from_secs(60);
/// Nothing ever listens on this port of the reserved ones.
pub const NOBODY: &str = "127.0.0.1:1";

pub fn addresses() -> Vec<String> {
    let servers = zookeeper_servers().iter();
    servers.map(|server| server.address.clone()).collect()
}

/// A client of its own, as another process would have one.
pub fn locks(ttl: Duration) -> (LockClient, LockMetrics) {
    locks_at(&addresses(), ttl)
}

pub fn locks_at(addresses: &[String], ttl: Duration) -> (LockClient, LockMetrics) {
    let backend = ZookeeperBackend::new(addresses, ZookeeperSettings::default()).unwrap();
    let metrics = LockMetrics::default();
    let settings = LockSettings { ttl, seed: 1 };
    let client = LockClient::new(Arc::new(backend), settings, metrics.clone());
    (client.unwrap(), metrics)
}

pub fn soon() -> Instant {
    Instant::now() + 10 * SECOND
}

pub fn unique_key() -> String {
    format!("test-{}", Uuid::new_v4())
}

/// Somebody who waits for the key.
pub fn waiter(locks: &LockClient, key: &str) -> JoinHandle<Result<Lease, LockError>> {
    let (locks, key) = (locks.clone(), key.to_owned());
    tokio::spawn(async move { locks.acquire(&key, Instant::now() + LONG).await })
}

/// A connection past the library.
pub async fn connection() -> Client {
    connection_to(&addresses()[0]).await
}

pub async fn connection_to(address: &str) -> Client {
    let connecting = Client::connector().with_session_timeout(20 * SECOND);
    connecting.connect(address).await.unwrap()
}

/// The places in the line for a key, and what is known of each, asked past the library.
pub async fn line(zookeeper: &Client, key: &str) -> Vec<(String, Stat)> {
    let line = format!("{ZOOKEEPER_LOCKS}/{key}");
    zookeeper.sync(&line).await.unwrap();
    let mut places = Vec::new();
    for name in zookeeper.list_children(&line).await.unwrap_or_default() {
        let path = format!("{line}/{name}");
        if let Some(stat) = zookeeper.check_stat(&path).await.unwrap() {
            places.push((path, stat));
        }
    }
    places
}

/// Waits until the line of a key is that long. No TTL here is short enough to empty it.
pub async fn until_line(zookeeper: &Client, key: &str, length: usize) {
    let reached = async {
        while line(zookeeper, key).await.len() != length {
            sleep(SECOND / 100).await;
        }
    };
    let reached = timeout(10 * SECOND, reached).await;
    assert!(reached.is_ok(), "{:?}", line(zookeeper, key).await);
}
