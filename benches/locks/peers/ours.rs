//! The locks of this project, as a user opens them.

use super::{Lock, Peer, TTL};
use crate::Trouble;
use async_trait::async_trait;
use fencepost::model::WaitPolicy;
use fencepost::services::open;
use fencepost::services::{Backend, LockOptions};
use fencing_lock::{CohortSettings, RedisBackend, RedisSettings};
use fencing_lock::{Env, ReleaseOutcome};
use fencing_lock::{Lease, LockBackend, LockClient, LockMetrics, LockSettings};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// No measurement lasts that long: who comes to it is stuck.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Ours {
    servers: Vec<String>,
    options: LockOptions,
    cohort: Option<CohortSettings>,
    /// Where all clients are tasks of one process: what they share.
    shared: Option<Mutex<Option<LockClient>>>,
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
            cohort: None,
            shared: None,
        }
    }

    /// The tasks of a process pass the lock on among themselves.
    pub fn with_cohort(self, cohort: CohortSettings) -> Ours {
        Ours {
            cohort: Some(cohort),
            ..self.in_one_process()
        }
    }

    /// All clients are tasks of one process and share its connections, which is
    /// how the library is meant to be used.
    pub fn in_one_process(self) -> Ours {
        Ours {
            shared: Some(Mutex::default()),
            ..self
        }
    }

    fn open(&self) -> Result<LockClient, Trouble> {
        let settings = LockSettings {
            ttl: TTL,
            seed: fastrand::u64(..),
        };
        let backend: Arc<dyn LockBackend> = match self.cohort {
            None => open(&self.options, &self.servers, None, Env::default())?,
            cohort => {
                let wait = self.options.wait;
                let settings = RedisSettings {
                    wait,
                    cohort,
                    ..RedisSettings::default()
                };
                Arc::new(RedisBackend::new(&self.servers[0], settings)?)
            }
        };
        Ok(LockClient::new(backend, settings, LockMetrics::default())?)
    }
}

#[async_trait]
impl Peer for Ours {
    fn name(&self) -> String {
        let LockOptions { backend, wait, .. } = self.options;
        let name = match backend {
            Backend::Redis => format!("ours: {backend}, {wait}"),
            _ => format!("ours: {backend}"),
        };
        match (&self.shared, self.cohort) {
            (_, Some(cohort)) => format!("{name}, cohort of {}", cohort.hand_offs_max),
            (Some(_), None) => name + ", in one process",
            (None, None) => name,
        }
    }

    async fn client(&self, key: &str) -> Result<Box<dyn Lock>, Trouble> {
        let locks = match &self.shared {
            None => self.open()?,
            Some(shared) => {
                let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
                if shared.is_none() {
                    *shared = Some(self.open()?);
                }
                shared.clone().ok_or("just opened")?
            }
        };
        Ok(Box::new(Client {
            locks,
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
        // Those of a cohort share a token, and have other numbers.
        let token = (lease.fence().0 << 10) + (lease.seq() >> 20);
        self.held = Some(lease);
        Ok(Some(token))
    }

    async fn release(&mut self) -> Result<(), Trouble> {
        let held = self.held.take().ok_or("released without a lock")?;
        match held.release().await {
            ReleaseOutcome::Released => Ok(()),
            other => Err(format!("released, and the server says {other:?}").into()),
        }
    }
}
