//! Locks in a ZooKeeper ensemble.

mod failure;
mod line;
mod names;
mod servers;
mod session;
mod standing;

#[cfg(feature = "servers")]
pub use names::{LOCKS, SESSIONS, lock_and_place, owner_and_number};
#[cfg(feature = "servers")]
pub use servers::check_address;

use crate::{
    Ask, Attempt, Env, FencingToken, Grant, LastWord, LockBackend, LockError, LockProblem,
    ReleaseOutcome, RenewOutcome, Term, WaitLine,
};
use async_trait::async_trait;
use failure::Failure;
use line::Place;
use prometheus_client::metrics::counter::Counter;
use servers::Servers;
use standing::Standing;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// A lock on a ZooKeeper ensemble: a line of nodes that the ensemble numbers, in a session
/// that all locks of this object share.
///
/// Each attempt makes its own node below the lock's. The owner of the lowest one holds the
/// lock; everybody else watches the one node just before their own, so a release wakes
/// exactly one waiter, in the order in which they came. The fencing token is the zxid that
/// created the holder's node: the ensemble's transactions only grow, whatever the node.
///
/// When the session is lost, all locks are lost together and every
/// [`Lease`](crate::Lease) is informed; the next attempt begins with a new one. The TTL is
/// the timeout of the session, and the ensemble has bounds for that: 2 to 20 ticks unless
/// it is told otherwise. A TTL outside of them is an error that says what it keeps.
///
/// Name all servers: any one of them may fail, freeze or come back.
///
/// ```no_run
/// use fencing_lock::{LockClient, LockMetrics, LockSettings, ZookeeperBackend, ZookeeperSettings};
/// use std::{sync::Arc, time::Duration};
///
/// # fn example() -> Result<(), fencing_lock::LockError> {
/// let servers = ["zookeeper-1:2181", "zookeeper-2:2181", "zookeeper-3:2181"].map(String::from);
/// let backend = ZookeeperBackend::new(&servers, ZookeeperSettings::default())?;
/// let settings = LockSettings { ttl: Duration::from_secs(10), seed: 1 };
/// let locks = LockClient::new(Arc::new(backend), settings, LockMetrics::default())?;
/// # Ok(())
/// # }
/// ```
pub struct ZookeeperBackend {
    standing: Arc<Standing>,
    queue_max: usize,
}

#[derive(Clone, Copy, Debug)]
pub struct ZookeeperSettings {
    /// Limits how long it takes to open a session.
    pub connect_timeout: Duration,
    /// Limits one request, the moves from server to server in the meantime included.
    pub response_timeout: Duration,
    /// A server that says nothing for that long, or for a quarter of the TTL, is left for
    /// another one.
    pub silence_max: Duration,
    /// Limits how many may wait for one lock; anyone beyond that is refused at once.
    pub queue_max: usize,
}

impl Default for ZookeeperSettings {
    fn default() -> ZookeeperSettings {
        ZookeeperSettings {
            connect_timeout: Duration::from_secs(3),
            response_timeout: Duration::from_secs(3),
            silence_max: Duration::from_secs(1),
            queue_max: 10_000,
        }
    }
}

impl ZookeeperBackend {
    /// Does not connect before the first use, so an unreachable server is not an error
    /// here.
    pub fn new(
        servers: &[String],
        settings: ZookeeperSettings,
    ) -> Result<ZookeeperBackend, LockError> {
        let made = Servers::new(servers, settings, Env::default());
        let servers =
            made.map_err(|problem| LockError::new(NAME, servers.join(","), "", problem))?;
        Ok(ZookeeperBackend {
            standing: Standing::new(servers),
            queue_max: settings.queue_max,
        })
    }

    /// Ends the session, and all locks with it, without waiting for its timeout.
    pub async fn close(&self) {
        self.standing.close().await;
    }

    /// Limits a request that goes on by itself if it is given up.
    async fn in_time<T>(
        &self,
        request: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let servers = &self.standing.servers;
        let answer = timeout(servers.limit(), request).await;
        answer.unwrap_or_else(|_| Err(servers.silent()))
    }

    async fn try_once(&self, ask: Ask<'_>) -> Result<Attempt, LockProblem> {
        let asked_at = Instant::now();
        let (place, before) = self.in_time(self.standing.enter(ask)).await?;
        if before.length == 0 {
            return Ok(Attempt::Granted(grant(&place, asked_at)?));
        }
        self.standing.leave(ask.owner).await?;
        Ok(Attempt::Busy {
            retry_in: Duration::MAX,
        })
    }

    async fn wait_for(&self, ask: Ask<'_>, last: &LastWord) -> Result<Grant, LockProblem> {
        let asked_at = Instant::now();
        let (place, before) = self.in_time(self.standing.enter(ask)).await?;
        if before.length == 0 {
            return grant(&place, asked_at);
        }
        // Leave out the holder.
        let (waiting, max) = (before.length - 1, self.queue_max);
        if waiting >= max {
            return Err(LockProblem::QueueFull { waiting, max });
        }
        last.is_busy();
        let first_at = place.until_first(&self.standing.servers, before, last);
        grant(&place, first_at.await?)
    }
}

const NAME: &str = "zookeeper";

fn grant(place: &Place, asked_at: Instant) -> Result<Grant, LockProblem> {
    let session = &place.session;
    let token = u64::try_from(place.created)
        .map_err(|_| LockProblem::BadAnswer(format!("a node of zxid {}", place.created)))?;
    let term = Term::Session(session.belief());
    Grant::new(FencingToken(token), asked_at, session.ttl(), term)
}

#[async_trait]
impl LockBackend for ZookeeperBackend {
    fn name(&self) -> &'static str {
        NAME
    }

    fn node(&self) -> &str {
        self.standing.servers.node()
    }

    fn requests(&self) -> Counter {
        self.standing.servers.requests().clone()
    }

    fn env(&self) -> &Env {
        self.standing.servers.env()
    }

    async fn try_acquire(&self, ask: Ask<'_>) -> Result<Attempt, LockError> {
        let tried = self.try_once(ask).await;
        tried.map_err(|problem| self.error(ask.key, problem))
    }

    fn line(&self) -> Option<&dyn WaitLine> {
        Some(self)
    }

    async fn renew(&self, ask: Ask<'_>) -> Result<RenewOutcome, LockError> {
        let renewed = self.in_time(self.standing.renew(ask)).await;
        renewed.map_err(|failure| self.error(ask.key, failure.into()))
    }

    async fn release(&self, key: &str, owner: &str) -> Result<ReleaseOutcome, LockError> {
        let left = self.standing.leave(owner).await;
        // Without a place there is nothing to free, and nobody knows for how long.
        let left = left.map(|left| left.unwrap_or(ReleaseOutcome::Expired));
        left.map_err(|failure| self.error(key, failure.into()))
    }

    async fn abandon(&self, key: &str, owner: &str) -> Result<(), LockError> {
        let left = self.standing.leave(owner).await;
        left.map(drop)
            .map_err(|failure| self.error(key, failure.into()))
    }
}

#[async_trait]
impl WaitLine for ZookeeperBackend {
    async fn wait(&self, ask: Ask<'_>, last: &LastWord) -> Result<Grant, LockError> {
        let granted = self.wait_for(ask, last).await;
        granted.map_err(|problem| self.error(ask.key, problem))
    }
}
