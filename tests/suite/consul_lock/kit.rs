//! What the tests of the locks in a Consul share.

use crate::support::consul_address;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use fencing_lock::{ConsulBackend, ConsulSettings, LockClient, LockMetrics, LockSettings};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

pub const SECOND: Duration = Duration::from_secs(1);
/// So long that a lock which is free was released and did not run out.
pub const LONG: Duration = Duration::from_secs(60);
/// Nothing ever listens on this port of the reserved ones.
pub const NOBODY: &str = "127.0.0.1:1";

/// A client of its own, as another process would have one.
pub fn locks(ttl: Duration) -> (LockClient, LockMetrics) {
    locks_at(&consul_address(), ttl)
}

pub fn locks_at(address: &str, ttl: Duration) -> (LockClient, LockMetrics) {
    locks_with(address, ttl, ConsulSettings::default())
}

/// Locks that are granted to nobody for a while after the end of a session.
pub fn delayed_locks(lock_delay: Duration) -> (LockClient, LockMetrics) {
    let settings = ConsulSettings {
        lock_delay,
        ..ConsulSettings::default()
    };
    locks_with(&consul_address(), LONG, settings)
}

pub fn locks_with(
    address: &str,
    ttl: Duration,
    settings: ConsulSettings,
) -> (LockClient, LockMetrics) {
    let metrics = LockMetrics::default();
    let backend = Arc::new(ConsulBackend::new(address, settings).unwrap());
    let client = LockClient::new(backend, LockSettings { ttl, seed: 1 }, metrics.clone());
    (client.unwrap(), metrics)
}

pub fn soon() -> Instant {
    Instant::now() + 5 * SECOND
}

/// Keys that need no escaping have their own names at the server.
pub fn unique_key() -> String {
    format!("test-{}", Uuid::new_v4())
}

/// A way to the server past the library.
pub struct Consul {
    http: reqwest::Client,
    url: String,
}

pub fn consul() -> Consul {
    consul_at(&consul_address())
}

pub fn consul_at(address: &str) -> Consul {
    let http = reqwest::Client::builder().no_proxy().timeout(LONG);
    Consul {
        http: http.build().unwrap(),
        url: format!("http://{address}/v1"),
    }
}

impl Consul {
    pub async fn put(&self, path: &str, body: &Value) -> Value {
        let request = self.http.put(format!("{}/{path}", self.url)).json(body);
        request.send().await.unwrap().json().await.unwrap()
    }

    /// The key of a lock as the server has it.
    pub async fn entry(&self, key: &str) -> Option<Value> {
        let url = format!("{}/kv/locks/{key}?consistent", self.url);
        let answer = self.http.get(url).send().await.unwrap();
        let mut all: Vec<Value> = match answer.status().as_u16() {
            404 => Vec::new(),
            _ => answer.json().await.unwrap(),
        };
        all.pop()
    }

    /// The owner of a lock that a session holds.
    pub async fn holder(&self, key: &str) -> Option<String> {
        let entry = self.entry(key).await?;
        entry["Session"].as_str()?;
        let owner = BASE64_STANDARD.decode(entry["Value"].as_str()?).unwrap();
        Some(String::from_utf8(owner).unwrap())
    }

    pub async fn session_of(&self, key: &str) -> Option<String> {
        let entry = self.entry(key).await?;
        entry["Session"].as_str().map(str::to_owned)
    }

    /// Ends the session that holds a lock, as the server does when it has expired.
    pub async fn end_session_of(&self, key: &str) {
        let session = self.session_of(key).await.expect("somebody holds it");
        let path = format!("session/destroy/{session}");
        assert_eq!(self.put(&path, &Value::Null).await, true);
    }

    pub async fn delete(&self, key: &str) {
        let url = format!("{}/kv/locks/{key}", self.url);
        let deleted = self.http.delete(url).send().await.unwrap();
        assert!(deleted.status().is_success());
    }

    pub async fn new_session(&self) -> String {
        let wanted = json!({ "TTL": "60s", "LockDelay": "0s", "NodeChecks": [] });
        let made = self.put("session/create", &wanted).await;
        made["ID"].as_str().unwrap().to_owned()
    }

    /// The number of sessions at the server.
    pub async fn sessions(&self) -> usize {
        let url = format!("{}/session/list?consistent", self.url);
        let answer = self.http.get(url).send().await.unwrap();
        answer.json::<Vec<Value>>().await.unwrap().len()
    }

    /// Asks for a lock in the name of a session.
    pub async fn lock(&self, key: &str, session: &str) -> Value {
        let lock = json!({ "Verb": "lock", "Key": format!("locks/{key}"), "Session": session });
        self.put("txn", &json!([{ "KV": lock }])).await
    }
}

/// Fails where a lock stays behind: no TTL here is short enough to free it.
pub async fn until_free(address: &str, key: &str) {
    let consul = consul_at(address);
    let free = async {
        while consul.session_of(key).await.is_some() {
            sleep(SECOND / 100).await;
        }
    };
    timeout(10 * SECOND, free).await.expect("no lock stays");
}
