use super::in_flight::new_owner;
use super::{Belief, LockError, LockProblem};
use crate::model::{FencingToken, ReleaseOutcome};
use async_trait::async_trait;
use futures_util::future::BoxFuture;
use prometheus_client::metrics::counter::Counter;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// One kind of lock server: how to ask it for a lock and how to give it back.
///
/// A backend knows the wire. Deadlines, retries, cancelling and cleaning up
/// are the [client](super::LockClient)'s; each request here has a time limit of
/// its own all the same.
#[async_trait]
pub trait LockBackend: Send + Sync {
    /// `redis`, `etcd` …: for errors and metrics.
    fn name(&self) -> &'static str;

    /// The server or servers that are asked, for errors.
    fn node(&self) -> &str;

    /// Counts every request that is sent to a server, of all clients of this
    /// backend. One that does not count stays at 0.
    fn requests(&self) -> Counter {
        Counter::default()
    }

    /// Random, and of one attempt alone: with a reused one, the leftover of a try
    /// whose answer was lost would look like a lock that we hold now.
    fn new_owner(&self) -> String {
        new_owner()
    }

    /// One try, which never waits for a lock to become free.
    async fn try_acquire(&self, ask: Ask<'_>) -> Result<Attempt, LockError>;

    /// The line that waiters stand in, where this backend has one. Without it
    /// the client tries again and again.
    fn line(&self) -> Option<&dyn WaitLine> {
        None
    }

    /// Prolongs a lock that is still held, and never re-creates one.
    async fn renew(&self, ask: Ask<'_>) -> Result<RenewOutcome, LockError>;

    /// Frees the lock if `owner` holds it, and changes nothing otherwise.
    async fn release(&self, key: &str, owner: &str) -> Result<ReleaseOutcome, LockError>;

    /// Undoes a try or a wait whose answer was not awaited or never came,
    /// whatever became of it: a grant is given back, a place in the line is
    /// left, and a request that is still under way must not take effect later.
    async fn abandon(&self, key: &str, owner: &str) -> Result<(), LockError> {
        // Enough where requests reach the server in the order in which they
        // were made, also when the future of the earlier one was dropped.
        self.release(key, owner).await.map(|_outcome| ())
    }

    /// The release that nobody should use, where this backend can be made to.
    fn unsafe_release(&self) -> Option<&dyn UnsafeRelease> {
        None
    }

    fn error(&self, key: &str, problem: LockProblem) -> LockError {
        LockError {
            backend: self.name(),
            node: self.node().to_owned(),
            key: key.to_owned(),
            problem,
        }
    }
}

/// A line at the server: one stands in it until one's turn has come.
#[async_trait]
pub trait WaitLine: Send + Sync {
    /// Waits until the lock is granted to `ask.owner`, however long that
    /// takes. The caller drops the future at its deadline and then calls
    /// [`LockBackend::abandon`], as after every error.
    async fn wait(&self, ask: Ask<'_>) -> Result<Grant, LockError>;
}

/// GET, and then DEL: somebody else may get the lock between the two. It is
/// here for the scenario that shows it happening.
#[async_trait]
pub trait UnsafeRelease: Send + Sync {
    /// `between` runs after the GET that named us as the holder.
    async fn get_then_del(
        &self,
        key: &str,
        owner: &str,
        between: BoxFuture<'_, ()>,
    ) -> Result<ReleaseOutcome, LockError>;
}

/// Who wants which lock for how long.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    pub key: &'a str,
    /// Random, and of this attempt alone.
    pub owner: &'a str,
    pub ttl: Duration,
}

/// The answer to one try.
#[derive(Debug)]
pub enum Attempt {
    Granted(Grant),
    /// Somebody else holds it. Asking again makes sense after `retry_in`, when
    /// the present hold runs out, or earlier if it is released before.
    Busy {
        retry_in: Duration,
    },
}

/// A lock that was granted.
#[derive(Debug)]
pub struct Grant {
    pub token: FencingToken,
    /// From before the request that was granted left this process.
    pub asked_at: Instant,
    /// What the server granted, which can be longer than what was asked for.
    pub ttl: Duration,
    pub term: Term,
}

/// What ends a holder's belief in its lock.
#[derive(Debug)]
pub enum Term {
    /// This moment, unless a renewal moves it.
    Until(Instant),
    /// The end of a session that all locks of this process share. It prolongs
    /// itself for as long as the server confirms it.
    Session(watch::Receiver<Belief>),
}

/// The answer to a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenewOutcome {
    /// Held until then, counted from before the request was sent.
    Renewed { until: Instant },
    /// Nobody holds it any more; nothing was changed.
    Expired,
    /// Somebody else holds it; nothing was changed.
    Superseded,
}
