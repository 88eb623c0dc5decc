//! Who is measured: ours, the bare commands, and what others use.

mod bare_redis;
mod etcd_leader;
mod etcd_lock_api;
mod etcd_puts;
mod ours;
mod ring;
mod rust_peer;

pub use bare_redis::BareRedis;
pub use etcd_lock_api::EtcdLockApi;
pub use etcd_puts::EtcdPuts;
pub use ours::Ours;
pub use ring::Ring;
pub use rust_peer::Rslock;

use crate::Trouble;
use async_trait::async_trait;
use std::time::Duration;

/// So long that no lock runs out while it is measured.
const TTL: Duration = Duration::from_secs(30);

/// One client of one lock, with connections of its own.
#[async_trait]
pub trait Lock: Send {
    /// Waits until it holds the lock. The token, where there is one.
    async fn acquire(&mut self) -> Result<Option<u64>, Trouble>;

    async fn release(&mut self) -> Result<(), Trouble>;
}

/// Something that clients of one lock can be had of.
#[async_trait]
pub trait Peer: Send + Sync {
    fn name(&self) -> String;

    /// Once for a key, before its clients.
    async fn prepare(&self, _key: &str) -> Result<(), Trouble> {
        Ok(())
    }

    async fn client(&self, key: &str) -> Result<Box<dyn Lock>, Trouble>;
}
