use super::{NAME, RedisBackend, RedisSettings};
#[cfg(feature = "unsafe-modes")]
use crate::UnsafeRelease;
use crate::{
    Ask, Attempt, Env, Grant, LastWord, LockBackend, LockError, LockProblem, ReleaseOutcome,
    RenewOutcome, WaitLine,
};
use async_trait::async_trait;
#[cfg(feature = "unsafe-modes")]
use futures_util::future::BoxFuture;
use prometheus_client::metrics::counter::Counter;

/// Locks on several independent Redis servers, of which each key has one. That server has its lock and
/// its fence counter.
///
/// A key is as safe as on its server alone: this shares out the load, and keeps nothing twice. The
/// servers and their order must never change. A key that moves to another server can have two
/// holders, and its tokens start again there.
pub struct ShardedRedisBackend {
    shards: Vec<RedisBackend>,
    nodes: String,
}

impl ShardedRedisBackend {
    /// Does not connect before the first use.
    pub fn new(
        addresses: &[String],
        settings: RedisSettings,
    ) -> Result<ShardedRedisBackend, LockError> {
        ShardedRedisBackend::with_env(addresses, settings, Env::default())
    }

    /// Does the same in surroundings that may be simulated.
    pub fn with_env(
        addresses: &[String],
        settings: RedisSettings,
        env: Env,
    ) -> Result<ShardedRedisBackend, LockError> {
        let nodes = addresses.join(",");
        if addresses.is_empty() {
            let problem = LockProblem::BadServers("at least one server is needed".to_owned());
            return Err(LockError::new(NAME, nodes, "", problem));
        }
        let requests = Counter::default();
        let shards = addresses
            .iter()
            .map(|address| RedisBackend::counting(address, settings, env.clone(), requests.clone()))
            .collect::<Result<_, _>>()?;
        Ok(ShardedRedisBackend { shards, nodes })
    }

    fn shard(&self, key: &str) -> &RedisBackend {
        &self.shards[shard_of(key, self.shards.len())]
    }
}

/// Returns the place of a key among so many servers. Every program has to agree on it, so it is
/// FNV-1a, which anybody can write down in three lines.
fn shard_of(key: &str, shards: usize) -> usize {
    let hash = key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    (hash % shards as u64) as usize
}

#[async_trait]
impl LockBackend for ShardedRedisBackend {
    fn name(&self) -> &'static str {
        NAME
    }

    fn node(&self) -> &str {
        &self.nodes
    }

    fn requests(&self) -> Counter {
        self.shards[0].requests()
    }

    fn env(&self) -> &Env {
        self.shards[0].env()
    }

    async fn try_acquire(&self, ask: Ask<'_>) -> Result<Attempt, LockError> {
        self.shard(ask.key).try_acquire(ask).await
    }

    fn line(&self) -> Option<&dyn WaitLine> {
        self.shards[0].line().map(|_| self as &dyn WaitLine)
    }

    async fn renew(&self, ask: Ask<'_>) -> Result<RenewOutcome, LockError> {
        self.shard(ask.key).renew(ask).await
    }

    async fn release(&self, key: &str, owner: &str) -> Result<ReleaseOutcome, LockError> {
        self.shard(key).release(key, owner).await
    }

    async fn abandon(&self, key: &str, owner: &str) -> Result<(), LockError> {
        self.shard(key).abandon(key, owner).await
    }

    #[cfg(feature = "unsafe-modes")]
    fn unsafe_release(&self) -> Option<&dyn UnsafeRelease> {
        Some(self)
    }
}

#[cfg(feature = "unsafe-modes")]
#[async_trait]
impl UnsafeRelease for ShardedRedisBackend {
    async fn get_then_del(
        &self,
        key: &str,
        owner: &str,
        between: BoxFuture<'_, ()>,
    ) -> Result<ReleaseOutcome, LockError> {
        self.shard(key).get_then_del(key, owner, between).await
    }
}

#[async_trait]
impl WaitLine for ShardedRedisBackend {
    async fn wait(&self, ask: Ask<'_>, last: &LastWord) -> Result<Grant, LockError> {
        let line = self.shard(ask.key).line();
        let line = line.expect("all shards have the same settings");
        line.wait(ask, last).await
    }
}

#[cfg(test)]
mod tests {
    use super::shard_of;

    /// A program of yesterday has to find its locks where they are.
    #[test]
    fn a_key_stays_where_it_is() {
        let shards = ["account-42", "", "k", "ünï"].map(|key| shard_of(key, 5));
        assert_eq!(shards, [0, 2, 1, 1]);
    }

    #[test]
    fn keys_are_shared_out() {
        let mut counts = [0; 5];
        for number in 0..1000 {
            counts[shard_of(&format!("key-{number}"), 5)] += 1;
        }
        assert!(counts.iter().all(|&count| count > 150), "{counts:?}");
    }
}
