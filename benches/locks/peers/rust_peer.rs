//! rslock, the Redlock client that a Rust user would take today.

use super::{Lock, Peer, TTL};
use crate::Trouble;
use async_trait::async_trait;
use rslock::{LockGuard, LockManager};
use std::time::Duration;

/// Its own default, which only matters to a lock that gives up.
const RETRIES: u32 = 3;

pub struct Rslock {
    pub nodes: Vec<String>,
    /// At most this long between two tries; its default is 200 ms.
    pub retry: Option<Duration>,
}

#[async_trait]
impl Peer for Rslock {
    fn name(&self) -> String {
        match self.retry {
            None => "rslock".to_owned(),
            Some(retry) => format!("rslock, retry within {} ms", retry.as_millis()),
        }
    }

    async fn client(&self, key: &str) -> Result<Box<dyn Lock>, Trouble> {
        let nodes = self.nodes.iter().map(|node| format!("redis://{node}"));
        let mut manager = LockManager::new(nodes.collect::<Vec<_>>());
        if let Some(retry) = self.retry {
            manager.set_retry(RETRIES, retry);
        }
        Ok(Box::new(Client {
            manager,
            key: key.to_owned(),
            held: None,
        }))
    }
}

struct Client {
    manager: LockManager,
    key: String,
    held: Option<LockGuard>,
}

#[async_trait]
impl Lock for Client {
    async fn acquire(&mut self) -> Result<Option<u64>, Trouble> {
        self.held = Some(self.manager.acquire(self.key.as_str(), TTL).await?);
        Ok(None)
    }

    async fn release(&mut self) -> Result<(), Trouble> {
        let held = self.held.take().ok_or("released without a lock")?;
        held.release().await;
        Ok(())
    }
}
