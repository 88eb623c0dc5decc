use super::{LockError, LockProblem};
use crate::model::{FencingToken, ReleaseOutcome};
use async_trait::async_trait;
use std::time::Duration;

/// The wire operations of one kind of lock server: each is one question and
/// one answer, with a time limit of its own, and none of them waits for a
/// lock to become free.
///
/// Requests of one owner must reach the server in the order in which they were
/// made, also when the future of an earlier one was dropped: the client undoes
/// an abandoned try with a release, and that must not overtake it.
#[async_trait]
pub trait LockBackend: Send + Sync {
    /// `redis`, `etcd` …: for errors and metrics.
    fn name(&self) -> &'static str;

    /// The server or servers that are asked, for errors.
    fn node(&self) -> &str;

    async fn try_acquire(
        &self,
        key: &str,
        owner: &str,
        ttl: Duration,
    ) -> Result<Attempt, LockError>;

    /// Prolongs a lock that `owner` still holds, and never re-creates one.
    async fn renew(&self, key: &str, owner: &str, ttl: Duration)
    -> Result<RenewOutcome, LockError>;

    /// Frees the lock if `owner` holds it, and changes nothing otherwise.
    async fn release(&self, key: &str, owner: &str) -> Result<ReleaseOutcome, LockError>;

    fn error(&self, key: &str, problem: LockProblem) -> LockError {
        LockError {
            backend: self.name(),
            node: self.node().to_owned(),
            key: key.to_owned(),
            problem,
        }
    }
}

/// The answer to one try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    Granted {
        token: FencingToken,
    },
    /// Somebody else holds it. Asking again makes sense after `retry_in`, when
    /// the present hold runs out, or earlier if it is released before.
    Busy {
        retry_in: Duration,
    },
}

/// The answer to a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenewOutcome {
    Renewed,
    /// Nobody holds it any more; nothing was changed.
    Expired,
    /// Somebody else holds it; nothing was changed.
    Superseded,
}
