use super::in_flight::in_background;
use super::{
    Ask, Belief, Grant, LockBackend, LockError, LockMetrics, LostReason, RenewOutcome, Term,
};
use crate::clock::raw_monotonic_ns;
use crate::model::{FencingToken, ReleaseOutcome};
use futures_util::future::BoxFuture;
use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use thiserror::Error;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout_at};

/// A connection that is broken says so within this time; a server that is silent
/// takes longer, and is not asked twice.
const AT_ONCE: Duration = Duration::from_millis(100);

/// A lock that was granted, and how long its holder may believe in it.
///
/// The belief ends by the holder's own monotonic clock, a TTL after the
/// request for the grant (or the last renewal) was sent: also when the server
/// is gone and every packet vanishes. That narrows the window in which two
/// holders exist and never closes it, because a frozen process looks at no
/// clock. [`Lease::fence`] closes it.
///
/// Dropping a lease releases it in the background, best effort.
pub struct Lease {
    backend: Arc<dyn LockBackend>,
    metrics: Arc<LockMetrics>,
    key: String,
    owner: String,
    token: FencingToken,
    ttl: Duration,
    acquired_at: Instant,
    // Not a watch channel, which would cost more than all the rest of a lease.
    belief: Mutex<Belief>,
    believes_otherwise: Notify,
    /// Where there is one, its deadline counts, and not that of `belief`.
    session: Option<watch::Receiver<Belief>>,
    settled: bool,
}

impl Lease {
    pub(super) fn new(
        backend: Arc<dyn LockBackend>,
        metrics: Arc<LockMetrics>,
        key: String,
        owner: String,
        grant: Grant,
    ) -> Lease {
        let (belief, session) = match grant.term {
            Term::Until(deadline) => (Belief::until(deadline), None),
            Term::Session(session) => {
                let belief = *session.borrow();
                (belief, Some(session))
            }
        };
        Lease {
            backend,
            metrics,
            key,
            owner,
            token: grant.token,
            ttl: grant.ttl,
            acquired_at: grant.asked_at,
            belief: Mutex::new(belief),
            believes_otherwise: Notify::new(),
            session,
            settled: false,
        }
    }

    pub fn key(&self) -> &str {
        &self.key
    }

    /// The random id of this one hold.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// The number to send along with every write.
    pub fn fence(&self) -> FencingToken {
        self.token
    }

    /// What the server granted: with etcd, whole seconds and at least its own minimum.
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// When the request that was granted left this process.
    pub fn acquired_at(&self) -> Instant {
        self.acquired_at
    }

    /// Until when the holder may believe that it holds the lock.
    pub fn deadline(&self) -> Instant {
        self.belief().deadline
    }

    /// The same by the clock that nobody can skew.
    pub fn valid_until_ns(&self) -> u64 {
        let (deadline, now, now_ns) = (self.deadline(), Instant::now(), raw_monotonic_ns());
        let ns = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        match deadline.checked_duration_since(now) {
            Some(left) => now_ns.saturating_add(ns(left)),
            None => now_ns.saturating_sub(ns(now.duration_since(deadline))),
        }
    }

    pub fn is_lost(&self) -> bool {
        self.lost_reason().is_some()
    }

    pub fn lost_reason(&self) -> Option<LostReason> {
        self.belief().lost()
    }

    /// Completes when the lease is lost: at its deadline at the latest, earlier
    /// when a renewal or its session was told so.
    pub async fn lost(&self) -> LostReason {
        let mut session = self.session.clone();
        loop {
            // From here on, no change is missed.
            let mut changed = pin!(self.believes_otherwise.notified());
            changed.as_mut().enable();
            if let Some(session) = &mut session {
                session.mark_unchanged();
            }
            let belief = self.belief();
            if let Some(reason) = belief.lost() {
                self.mark_lost(reason);
                return reason;
            }
            let session_changed = async {
                match &mut session {
                    Some(session) => session.changed().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = changed => {}
                () = sleep_until(belief.deadline) => {}
                changed = session_changed => {
                    if changed.is_err() {
                        self.mark_lost(LostReason::SessionOver);
                    }
                }
            }
        }
    }

    /// What this hold and, where there is one, its session believe together.
    fn belief(&self) -> Belief {
        let own = *self.own_belief();
        let Some(session) = &self.session else {
            return own;
        };
        let shared = *session.borrow();
        Belief {
            deadline: shared.deadline,
            lost: own.lost.or(shared.lost),
        }
    }

    /// Prolongs the lease by a TTL from now, if it is still held.
    ///
    /// An answer that comes after the old deadline does not bring a lease back:
    /// the holder may already have been told.
    pub async fn renew(&self) -> Result<(), RenewError> {
        let result = self.try_renew().await;
        match &result {
            Ok(()) => self.metrics.renews.inc(),
            Err(error) => {
                if let RenewError::Lost(reason) = error {
                    self.mark_lost(*reason);
                }
                self.metrics.renew_failures.inc()
            }
        };
        result
    }

    async fn try_renew(&self) -> Result<(), RenewError> {
        let belief = self.belief();
        if let Some(reason) = belief.lost() {
            return Err(RenewError::Lost(reason));
        }
        let request = self.backend.renew(Ask {
            key: &self.key,
            owner: &self.owner,
            ttl: self.ttl,
        });
        let answer = timeout_at(belief.deadline, request).await;
        match answer.map_err(|_| RenewError::Lost(LostReason::Deadline))?? {
            RenewOutcome::Expired => Err(RenewError::Lost(LostReason::Expired)),
            RenewOutcome::Superseded => Err(RenewError::Lost(LostReason::Superseded)),
            RenewOutcome::Renewed { until } => self.prolong(until).map_err(RenewError::Lost),
        }
    }

    fn prolong(&self, until: Instant) -> Result<(), LostReason> {
        if self.session.is_some() {
            // A session moves its own deadline.
            return self.lost_reason().map_or(Ok(()), Err);
        }
        let prolonged = self.own_belief().prolong(until);
        self.believes_otherwise.notify_waiters();
        prolonged
    }

    /// Gives the lock back and says what the server made of it. A lock that is
    /// not ours any more stays as it is.
    pub async fn release(mut self) -> ReleaseOutcome {
        let asked_at = Instant::now();
        let mut answer = self.backend.release(&self.key, &self.owner).await;
        // The connection of a server that was restarted meanwhile breaks at the
        // first word, and the key would stay blocked for its TTL.
        if answer.is_err() && asked_at.elapsed() < AT_ONCE {
            answer = self.backend.release(&self.key, &self.owner).await;
            if let Ok(ReleaseOutcome::Expired | ReleaseOutcome::Superseded) = answer {
                // The first may have freed it after all.
                answer = Ok(ReleaseOutcome::Unknown);
            }
        }
        self.settle(answer)
    }

    /// Asks who holds the lock, awaits `between`, and then deletes the lock,
    /// whoever holds it by then.
    ///
    /// For the scenario that shows it deleting somebody else's lock: nothing
    /// else should call this. Where the backend has no such release, the lease
    /// is released as it should be.
    pub async fn release_unsafe_get_then_del(
        mut self,
        between: BoxFuture<'_, ()>,
    ) -> ReleaseOutcome {
        let answer = match self.backend.unsafe_release() {
            Some(release) => release.get_then_del(&self.key, &self.owner, between).await,
            None => self.backend.release(&self.key, &self.owner).await,
        };
        self.settle(answer)
    }

    fn settle(&mut self, answer: Result<ReleaseOutcome, LockError>) -> ReleaseOutcome {
        let outcome = answer.unwrap_or(ReleaseOutcome::Unknown);
        self.settled = true;
        self.metrics.released(outcome, self.acquired_at.elapsed());
        outcome
    }

    fn mark_lost(&self, reason: LostReason) {
        self.own_belief().lost.get_or_insert(reason);
        self.believes_otherwise.notify_waiters();
    }

    fn own_belief(&self) -> MutexGuard<'_, Belief> {
        self.belief.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.settled {
            self.metrics.ended(self.acquired_at.elapsed());
            let backend = self.backend.clone();
            let (key, owner) = (
                std::mem::take(&mut self.key),
                std::mem::take(&mut self.owner),
            );
            in_background(async move {
                let _unknown = backend.release(&key, &owner).await;
            });
        }
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("key", &self.key)
            .field("owner", &self.owner)
            .field("token", &self.token)
            .field("ttl", &self.ttl)
            .field("belief", &*self.own_belief())
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, Error)]
pub enum RenewError {
    #[error("the lease is lost: {0}")]
    Lost(LostReason),
    /// Not known to be lost: worth another try before the deadline.
    #[error(transparent)]
    Lock(#[from] LockError),
}
