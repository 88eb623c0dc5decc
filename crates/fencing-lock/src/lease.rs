use super::held::{HeldLease, Holding};
use super::{
    Ask, Belief, Env, Grant, LockBackend, LockError, LockMetrics, LostReason, RenewOutcome, Term,
};
use crate::{FencingToken, ReleaseOutcome};
#[cfg(feature = "unsafe-modes")]
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// A broken connection fails within this time; a silent server takes longer, and is not
/// asked twice.
const AT_ONCE: Duration = Duration::from_millis(100);

/// The numbers that one hold of a cohort has for its writes.
const SEQS_PER_HOLD: u64 = 1 << 20;

/// A granted lock, and the time for which its holder may believe in it.
///
/// The belief ends by the holder's own monotonic clock, a TTL after the request for the
/// grant (or the last renewal) was sent, even if the server is gone and every packet is
/// lost. That narrows the window in which two holders exist but never closes it, because
/// a frozen process does not look at a clock. [`Lease::fence`] closes it.
///
/// Dropping a lease releases it in the background, best effort.
pub struct Lease {
    backend: Arc<dyn LockBackend>,
    metrics: Arc<LockMetrics>,
    key: String,
    owner: String,
    token: FencingToken,
    seq: u64,
    ttl: Duration,
    acquired_at: Instant,
    held_from: Instant,
    // A watch channel would cost more than all the rest of a lease.
    holding: Arc<Holding>,
    believes_otherwise: Notify,
    /// Its number among those that this process holds.
    number: u64,
    settled: bool,
}

impl Lease {
    pub(super) fn new(
        backend: Arc<dyn LockBackend>,
        metrics: Arc<LockMetrics>,
        key: String,
        owner: String,
        mut grant: Grant,
    ) -> Lease {
        let owner = grant.take_owner().unwrap_or(owner);
        let seq = u64::from(grant.hand_offs()) * SEQS_PER_HOLD;
        let (token, ttl) = (grant.token(), grant.ttl());
        let (acquired_at, held_from) = (grant.asked_at(), grant.heard_at());
        let term = grant.into_term();
        let own = Mutex::new(term.belief());
        let session = match term {
            Term::Until(_) => None,
            Term::Session(session) => Some(session),
        };
        let holding = Arc::new(Holding { own, session });
        let number = metrics.leases_held.add(HeldLease {
            token,
            since: held_from,
            holding: holding.clone(),
        });
        Lease {
            backend,
            metrics,
            key,
            owner,
            token,
            seq,
            ttl,
            acquired_at,
            held_from,
            holding,
            believes_otherwise: Notify::new(),
            number,
            settled: false,
        }
    }

    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the random id of this one hold, or with a cohort, of its grant.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Returns the token to send along with every write.
    pub fn fence(&self) -> FencingToken {
        self.token
    }

    /// Returns the first number to send along with the writes, as `X-Fence-Seq`. It is 0
    /// except with a [cohort](crate::CohortSettings), whose holders share a token: there,
    /// the pair (token, seq) grows from hold to hold. A holder that writes several times
    /// counts on from here, up to a million.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Returns the TTL that the server granted: with etcd, whole seconds and at least its
    /// own minimum.
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// Returns when the request left this process that the deadline counts from. For a
    /// lock that was handed over, this is the last confirmation of the wait.
    pub fn acquired_at(&self) -> Instant {
        self.acquired_at
    }

    /// Returns until when the holder may believe that it holds the lock.
    pub fn deadline(&self) -> Instant {
        self.belief().deadline
    }

    pub fn is_lost(&self) -> bool {
        self.lost_reason().is_some()
    }

    pub fn lost_reason(&self) -> Option<LostReason> {
        self.belief().lost()
    }

    /// Completes when the lease is lost: at its deadline at the latest, and earlier if a
    /// renewal or its session learned of it.
    pub async fn lost(&self) -> LostReason {
        let mut session = self.holding.session.clone();
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
            // Every branch leads to another look at the belief, so none can starve
            // another. A session that ends when the deadline has passed is not the reason.
            tokio::select! {
                biased;
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

    fn belief(&self) -> Belief {
        self.holding.belief()
    }

    pub(super) fn env(&self) -> &Env {
        self.backend.env()
    }

    /// Prolongs the lease by a TTL from now, if it is still held.
    ///
    /// An answer that comes after the old deadline does not restore a lease: the holder
    /// may already know that it is lost.
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
        if let Some(reason) = self.lost_reason() {
            return Err(RenewError::Lost(reason));
        }
        let request = self.backend.renew(Ask {
            key: &self.key,
            owner: &self.owner,
            ttl: self.ttl,
        });
        let answer = tokio::select! {
            biased;
            answer = request => answer?,
            // A session may move the deadline in the meantime.
            reason = self.lost() => return Err(RenewError::Lost(reason)),
        };
        match answer {
            RenewOutcome::Expired => Err(RenewError::Lost(LostReason::Expired)),
            RenewOutcome::Superseded => Err(RenewError::Lost(LostReason::Superseded)),
            RenewOutcome::Renewed { until } => self.prolong(until).map_err(RenewError::Lost),
        }
    }

    fn prolong(&self, until: Instant) -> Result<(), LostReason> {
        if self.holding.session.is_some() {
            // A session moves its deadline itself.
            return self.lost_reason().map_or(Ok(()), Err);
        }
        let prolonged = self.holding.own.lock().prolong(until);
        self.believes_otherwise.notify_waiters();
        prolonged
    }

    /// Releases the lock and returns the server's answer. A lock that is not ours any
    /// more stays as it is.
    pub async fn release(mut self) -> ReleaseOutcome {
        let asked_at = Instant::now();
        let mut answer = self.backend.release(&self.key, &self.owner).await;
        // The connection to a server that was restarted in the meantime breaks at the
        // first request. Without a second one, the key would stay blocked for its TTL.
        if answer.is_err() && asked_at.elapsed() < AT_ONCE {
            answer = self.backend.release(&self.key, &self.owner).await;
            if let Ok(ReleaseOutcome::Expired | ReleaseOutcome::Superseded) = answer {
                // The first request may have freed it after all.
                answer = Ok(ReleaseOutcome::Unknown);
            }
        }
        self.settle(answer)
    }

    #[cfg(feature = "unsafe-modes")]
    /// Asks who holds the lock, awaits `between`, and then deletes the lock, no matter
    /// who holds it by then.
    ///
    /// Only for the scenario that shows it deleting somebody else's lock. If the backend
    /// has no such release, the lease is released safely.
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
        self.metrics.leases_held.remove(self.number);
        self.metrics.released(outcome, self.held_from.elapsed());
        outcome
    }

    fn mark_lost(&self, reason: LostReason) {
        self.holding.own.lock().lost.get_or_insert(reason);
        self.believes_otherwise.notify_waiters();
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.settled {
            self.metrics.leases_held.remove(self.number);
            self.metrics.ended(self.held_from.elapsed());
            let backend = self.backend.clone();
            let (key, owner) = (
                std::mem::take(&mut self.key),
                std::mem::take(&mut self.owner),
            );
            self.backend.env().in_background(async move {
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
            .field("belief", &self.belief())
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, Error)]
pub enum RenewError {
    #[error("the lease is lost: {0}")]
    Lost(LostReason),
    /// The lease is not known to be lost: it is worth another try before the deadline.
    #[error(transparent)]
    Lock(#[from] LockError),
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_trait::async_trait;
    use tokio::sync::watch;
    use tokio::time::sleep;

    /// A server that answers a renewal after two seconds.
    struct Slow;

    const SECOND: Duration = Duration::from_secs(1);

    #[async_trait]
    impl LockBackend for Slow {
        fn name(&self) -> &'static str {
            "slow"
        }

        fn node(&self) -> &str {
            "nowhere"
        }

        async fn try_acquire(&self, _: Ask<'_>) -> Result<crate::Attempt, LockError> {
            unreachable!("the lease is made without it")
        }

        async fn renew(&self, _: Ask<'_>) -> Result<RenewOutcome, LockError> {
            sleep(2 * SECOND).await;
            let until = Instant::now();
            Ok(RenewOutcome::Renewed { until })
        }

        async fn release(&self, _: &str, _: &str) -> Result<ReleaseOutcome, LockError> {
            Ok(ReleaseOutcome::Released)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_ends_with_its_session_and_not_before() {
        let now = Instant::now();
        let belief = watch::Sender::new(Belief::until(now + SECOND));
        let term = Term::Session(belief.subscribe());
        let grant = Grant::new(FencingToken(1), now, SECOND, term).unwrap();
        let (key, owner) = ("k".to_owned(), "me".to_owned());
        let lease = Lease::new(Arc::new(Slow), Arc::default(), key, owner, grant);
        let prolonging = async {
            sleep(SECOND / 2).await;
            belief.send_modify(|belief| belief.deadline = now + 10 * SECOND);
        };
        let (renewed, ()) = tokio::join!(lease.renew(), prolonging);
        assert!(renewed.is_ok(), "{renewed:?}");
        belief.send_modify(|belief| belief.deadline = Instant::now() + SECOND);
        let renewed = lease.renew().await;
        assert!(matches!(
            renewed,
            Err(RenewError::Lost(LostReason::Deadline))
        ));
    }
}
