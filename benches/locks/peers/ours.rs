//! The locks of this project, as a user opens them.

use super::{Lock, Peer, TTL};
use crate::Trouble;
use async_trait::async_trait;
use fencepost::dlock::{Lease, LockClient, LockMetrics, LockSettings, open};
use fencepost::model::{Backend, LockOptions, ReleaseOutcome, WaitPolicy};
use std::time::Duration;
use tokio::time::Instant;

/// No measurement lasts that long: who comes to it is stuck.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Ours {
    pub servers: Vec<String>,
    pub options: LockOptions,
}

impl Ours {
    pub fn new(backend: Backend, servers: &[String]) -> Ours {
        Ours::waiting(backend, WaitPolicy::default(), servers)
    }

    pub fn waiting(backend: Backend, wait: WaitPolicy, servers: &[String]) -> Ours {
        Ours {
            servers: servers.to_owned(),
            options: LockOptions {
                backend,
                wait,
                ..LockOptions::default()
            },
        }
    }
}

#[async_trait]
impl Peer for Ours {
    fn name(&self) -> String {
        let LockOptions { backend, wait, .. } = self.options;
        match backend {
            Backend::Redis => format!("ours: {backend}, {wait}"),
            _ => format!("ours: {backend}"),
        }
    }

    async fn client(&self, key: &str) -> Result<Box<dyn Lock>, Trouble> {
        let settings = LockSettings {
            ttl: TTL,
            seed: fastrand::u64(..),
        };
        let backend = open(&self.options, &self.servers)?;
        Ok(Box::new(Client {
            locks: LockClient::new(backend, settings, LockMetrics::default())?,
            key: key.to_owned(),
            held: None,
        }))
    }
}

struct Client {
    locks: LockClient,
    key: String,
    held: Option<Lease>,
}

#[async_trait]
impl Lock for Client {
    async fn acquire(&mut self) -> Result<Option<u64>, Trouble> {
        let deadline = Instant::now() + PATIENCE;
        let lease = self.locks.acquire(&self.key, deadline).await?;
        let token = lease.fence();
        self.held = Some(lease);
        Ok(Some(token.0))
    }

    async fn release(&mut self) -> Result<(), Trouble> {
        let held = self.held.take().ok_or("released without a lock")?;
        match held.release().await {
            ReleaseOutcome::Released => Ok(()),
            other => Err(format!("released, and the server says {other:?}").into()),
        }
    }
}
