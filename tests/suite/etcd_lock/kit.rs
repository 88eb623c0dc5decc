//! What the tests of the etcd locks share.

use crate::support::etcd_servers;
use etcd_client::{Client, GetOptions, KeyValue, SortOrder, SortTarget};
use fencing_lock::{
    EtcdBackend, EtcdLockApiBackend, EtcdSettings, Lease, LockBackend, LockClient, LockMetrics,
    LockSettings,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

pub const SECOND: Duration = Duration::from_secs(1);
/// So long that a key which is gone was released and did not run out.
pub const LONG: Duration = Duration::from_secs(60);
/// Nothing ever listens on this port of the reserved ones.
pub const NOBODY: &str = "127.0.0.1:1";

/// The three members of the tests' cluster.
pub fn members() -> Vec<String> {
    let servers = etcd_servers().iter();
    servers.map(|server| server.address.clone()).collect()
}

pub fn backend() -> Arc<EtcdBackend> {
    Arc::new(EtcdBackend::new(&members(), EtcdSettings::default()).unwrap())
}

pub fn api_backend() -> Arc<EtcdLockApiBackend> {
    Arc::new(EtcdLockApiBackend::new(&members(), EtcdSettings::default()).unwrap())
}

pub fn backend_at(addresses: &[String]) -> Arc<dyn LockBackend> {
    Arc::new(EtcdBackend::new(addresses, EtcdSettings::default()).unwrap())
}

pub fn api_backend_at(addresses: &[String]) -> Arc<dyn LockBackend> {
    Arc::new(EtcdLockApiBackend::new(addresses, EtcdSettings::default()).unwrap())
}

/// Locks with a session of their own, as another process has.
pub fn locks(ttl: Duration) -> (LockClient, LockMetrics) {
    locks_of(backend(), ttl)
}

pub fn locks_of(backend: Arc<dyn LockBackend>, ttl: Duration) -> (LockClient, LockMetrics) {
    let metrics = LockMetrics::default();
    let settings = LockSettings { ttl, seed: 1 };
    let client = LockClient::new(backend, settings, metrics.clone());
    (client.unwrap(), metrics)
}

pub fn soon() -> Instant {
    Instant::now() + 10 * SECOND
}

pub fn unique_key() -> String {
    format!("test-{}", Uuid::new_v4())
}

/// A bystander's connection, past the library.
pub async fn etcd() -> Client {
    Client::connect(members(), None).await.unwrap()
}

/// Who stands in the line for a lock, the first one first.
pub async fn line(etcd: &Client, key: &str) -> Vec<KeyValue> {
    let options = GetOptions::new()
        .with_prefix()
        .with_sort(SortTarget::Create, SortOrder::Ascend);
    let prefix = format!("/locks/{key}/");
    let answer = etcd.kv_client().get(prefix, Some(options)).await;
    answer.unwrap().take_kvs()
}

/// Fails where this many do not come to stand in line.
pub async fn until_length(etcd: &Client, key: &str, length: usize) {
    let reached = async {
        while line(etcd, key).await.len() != length {
            sleep(Duration::from_millis(5)).await;
        }
    };
    let reached = timeout(10 * SECOND, reached).await;
    assert!(reached.is_ok(), "{:?}", line(etcd, key).await);
}

/// One who waits for a lock, as long as it takes.
pub fn waiter(locks: &LockClient, key: &str) -> JoinHandle<Lease> {
    let (locks, key) = (locks.clone(), key.to_owned());
    tokio::spawn(async move { locks.acquire(&key, Instant::now() + LONG).await.unwrap() })
}

/// Which member leads, as an index into the servers.
pub async fn leader() -> usize {
    let asking = async {
        loop {
            for (index, address) in members().iter().enumerate() {
                let client = Client::connect([address], None).await.unwrap();
                let status = timeout(SECOND, async {
                    let mut maintenance = client.maintenance_client();
                    maintenance.status().await
                });
                if let Ok(Ok(status)) = status.await
                    && status.header().unwrap().member_id() == status.leader()
                {
                    return index;
                }
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(10 * SECOND, asking).await.expect("a leader")
}
