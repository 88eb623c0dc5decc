use super::env::REAL;
use super::{Belief, Env, LastWord, LockError, LockProblem};
use crate::FencingToken;
use async_trait::async_trait;
#[cfg(feature = "unsafe-modes")]
use futures_util::future::BoxFuture;
use prometheus_client::metrics::counter::Counter;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// One kind of lock server.
///
/// A backend speaks the server's protocol and sets a time limit on each request. The
/// [client](super::LockClient) handles deadlines, retries, cancelling and cleaning up.
#[async_trait]
pub trait LockBackend: Send + Sync {
    /// Returns `redis`, `etcd` …, for errors and metrics.
    fn name(&self) -> &'static str;

    /// Returns the address of the server or servers, for errors.
    fn node(&self) -> &str;

    /// Returns the count of all requests that clients of this backend sent to a server.
    /// It stays at 0 for a backend that does not count.
    fn requests(&self) -> Counter {
        Counter::default()
    }

    /// Returns a random name for one attempt only. With a reused name, the leftover of a
    /// try whose answer was lost would look like a lock that we hold now.
    fn new_owner(&self) -> String {
        self.env().uuid().to_string()
    }

    /// Returns the surroundings that the backend was made with. Its clients and their
    /// leases use them too.
    fn env(&self) -> &Env {
        &REAL
    }

    /// Tries once, and never waits for a lock to become free.
    async fn try_acquire(&self, ask: Ask<'_>) -> Result<Attempt, LockError>;

    /// Returns the line in which waiters wait, if this backend has one. Without it the
    /// client tries again and again.
    fn line(&self) -> Option<&dyn WaitLine> {
        None
    }

    /// Prolongs a lock that is still held, and never re-creates one.
    async fn renew(&self, ask: Ask<'_>) -> Result<RenewOutcome, LockError>;

    /// Frees the lock if `owner` holds it, and changes nothing otherwise.
    async fn release(&self, key: &str, owner: &str) -> Result<ReleaseOutcome, LockError>;

    /// Undoes a try or a wait that failed, or whose future was dropped. It gives a grant
    /// back, leaves a place in the line, and keeps a request that is still under way from
    /// taking effect later. The backend knows whether there is something to undo: the
    /// last error of an attempt does not say what its earlier requests left.
    async fn abandon(&self, key: &str, owner: &str) -> Result<(), LockError> {
        // This is enough where requests reach the server in the order in which they were
        // made, also when the future of the earlier one was dropped.
        self.release(key, owner).await.map(|_outcome| ())
    }

    #[cfg(feature = "unsafe-modes")]
    /// Returns the unsafe release that only a demonstration uses, if this backend has
    /// one.
    fn unsafe_release(&self) -> Option<&dyn UnsafeRelease> {
        None
    }

    fn error(&self, key: &str, problem: LockProblem) -> LockError {
        LockError::new(self.name(), self.node(), key, problem)
    }
}

/// A line of waiters that the server keeps.
#[async_trait]
pub trait WaitLine: Send + Sync {
    /// Waits until the lock is granted to `ask.owner`, however long that
    /// takes. The caller drops the future at its deadline and then calls
    /// [`LockBackend::abandon`], as after every error. `last` gets what the server says
    /// meanwhile.
    async fn wait(&self, ask: Ask<'_>, last: &LastWord) -> Result<Grant, LockError>;
}

#[cfg(feature = "unsafe-modes")]
/// A release by GET and then DEL: somebody else may get the lock between the two. It
/// exists for the scenario that shows this.
#[async_trait]
pub trait UnsafeRelease: Send + Sync {
    /// Runs `between` after the GET that named us as the holder.
    async fn get_then_del(
        &self,
        key: &str,
        owner: &str,
        between: BoxFuture<'_, ()>,
    ) -> Result<ReleaseOutcome, LockError>;
}

/// A request for a lock.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    pub key: &'a str,
    /// A random name, used for this attempt only.
    pub owner: &'a str,
    pub ttl: Duration,
}

/// The reaction to a lock that is held by somebody else.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum IfHeld {
    /// Wait in the backend's line, if it has one.
    StandInLine,
    /// Return the answer at once.
    ComeBack,
}

/// The answer to one try.
#[derive(Debug)]
pub enum Attempt {
    Granted(Grant),
    /// Somebody else holds the lock. It makes sense to ask again after `retry_in`, when
    /// the present hold expires, or earlier if the lock is released before.
    Busy {
        retry_in: Duration,
    },
}

/// A lock that was granted, and whose time was not over when the answer came.
#[derive(Debug)]
pub struct Grant {
    token: FencingToken,
    asked_at: Instant,
    heard_at: Instant,
    ttl: Duration,
    term: Term,
    /// Present if this process passed the lock on to us: whose grant it is.
    owner: Option<String>,
    hand_offs: u32,
}

impl Grant {
    /// Makes a grant out of an answer that has just come. If its time is over, nobody may
    /// begin work under it, and it is an error.
    ///
    /// `asked_at` is from before the lock could be held. `ttl` is the TTL that the server
    /// granted, which can be longer than the requested one.
    pub fn new(
        token: FencingToken,
        asked_at: Instant,
        ttl: Duration,
        term: Term,
    ) -> Result<Grant, LockProblem> {
        let heard_at = Instant::now();
        if term.belief().lost().is_some() {
            let took = heard_at.saturating_duration_since(asked_at);
            return Err(LockProblem::TooLate { took });
        }
        Ok(Grant {
            token,
            asked_at,
            heard_at,
            ttl,
            term,
            owner: None,
            hand_offs: 0,
        })
    }

    /// Makes this the grant of another owner, which was passed on so many times.
    #[cfg(feature = "redis")]
    pub(super) fn passed_on(self, owner: String, hand_offs: u32) -> Grant {
        Grant {
            owner: Some(owner),
            hand_offs,
            ..self
        }
    }

    /// Takes out the owner at the server, if it is not the one who asked.
    pub(super) fn take_owner(&mut self) -> Option<String> {
        self.owner.take()
    }

    /// Returns how often the lock was passed on under this grant.
    pub fn hand_offs(&self) -> u32 {
        self.hand_offs
    }

    pub fn token(&self) -> FencingToken {
        self.token
    }

    /// Returns when the request was sent that the term counts from.
    pub fn asked_at(&self) -> Instant {
        self.asked_at
    }

    /// Returns when the answer came. A lock that is handed over was requested long before.
    pub fn heard_at(&self) -> Instant {
        self.heard_at
    }

    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    pub fn into_term(self) -> Term {
        self.term
    }
}

/// The end of a holder's belief in its lock.
#[derive(Debug)]
pub enum Term {
    /// This moment, unless a renewal moves it.
    Until(Instant),
    /// The end of a session that all locks of this process share. It prolongs
    /// itself for as long as the server confirms it.
    Session(watch::Receiver<Belief>),
}

impl Term {
    pub(super) fn belief(&self) -> Belief {
        match self {
            Term::Until(deadline) => Belief::until(*deadline),
            Term::Session(session) => *session.borrow(),
        }
    }
}

/// The answer to a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenewOutcome {
    /// The lock is held until then, counted from before the request was sent.
    Renewed { until: Instant },
    /// Nobody holds the lock any more; nothing was changed.
    Expired,
    /// Somebody else holds the lock; nothing was changed.
    Superseded,
}

/// The result of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReleaseOutcome {
    /// The lock was ours and is free now.
    Released,
    /// Nobody held the lock any more: it had expired.
    Expired,
    /// Somebody else holds the lock; nothing was changed.
    Superseded,
    /// Somebody else held the lock, and this release took it from them. Only a release
    /// that asks first and deletes later can do that.
    #[cfg(feature = "unsafe-modes")]
    FreedAnother,
    /// No answer came: the lock may or may not be free.
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LostReason;

    #[test]
    fn a_grant_whose_time_is_over_cannot_be_made() {
        let (now, ttl) = (Instant::now(), Duration::from_secs(600));
        let grant = |term| Grant::new(FencingToken(1), now, ttl, term);
        assert!(grant(Term::Until(now + ttl)).is_ok());
        let late = grant(Term::Until(now)).unwrap_err();
        assert!(matches!(late, LockProblem::TooLate { .. }), "{late}");
        let mut belief = Belief::until(now + ttl);
        belief.lost = Some(LostReason::SessionOver);
        let session = watch::Sender::new(belief).subscribe();
        assert!(grant(Term::Session(session)).is_err());
    }
}
