use super::client::release_in_background;
use super::{LockBackend, LockError, LockMetrics, RenewOutcome};
use crate::model::{FencingToken, ReleaseOutcome};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};

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
    metrics: LockMetrics,
    key: String,
    owner: String,
    token: FencingToken,
    ttl: Duration,
    acquired_at: Instant,
    belief: watch::Sender<Belief>,
    settled: bool,
}

#[derive(Clone, Copy, Debug)]
struct Belief {
    deadline: Instant,
    /// Once set, it stays: a holder who was told so may have acted on it.
    lost: Option<LostReason>,
}

impl Belief {
    fn lost(self) -> Option<LostReason> {
        let ran_out = || (Instant::now() >= self.deadline).then_some(LostReason::Deadline);
        self.lost.or_else(ran_out)
    }
}

impl Lease {
    /// `sent_at` is from before the request for this grant left.
    pub(super) fn new(
        backend: Arc<dyn LockBackend>,
        metrics: LockMetrics,
        key: String,
        owner: String,
        token: FencingToken,
        ttl: Duration,
        sent_at: Instant,
    ) -> Lease {
        let belief = Belief {
            deadline: sent_at + ttl,
            lost: None,
        };
        Lease {
            backend,
            metrics,
            key,
            owner,
            token,
            ttl,
            acquired_at: sent_at,
            belief: watch::Sender::new(belief),
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

    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// When the request that was granted left this process.
    pub fn acquired_at(&self) -> Instant {
        self.acquired_at
    }

    /// Until when the holder may believe that it holds the lock.
    pub fn deadline(&self) -> Instant {
        self.belief.borrow().deadline
    }

    pub fn is_lost(&self) -> bool {
        self.lost_reason().is_some()
    }

    pub fn lost_reason(&self) -> Option<LostReason> {
        self.belief.borrow().lost()
    }

    /// Completes when the lease is lost: at its deadline at the latest, earlier
    /// when a renewal was told so.
    pub async fn lost(&self) -> LostReason {
        let mut changes = self.belief.subscribe();
        loop {
            let belief = *changes.borrow_and_update();
            if let Some(reason) = belief.lost() {
                self.mark_lost(reason);
                return reason;
            }
            tokio::select! {
                _ = changes.changed() => {}
                () = sleep_until(belief.deadline) => {}
            }
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
        let belief = *self.belief.borrow();
        if let Some(reason) = belief.lost() {
            return Err(RenewError::Lost(reason));
        }
        let sent_at = Instant::now();
        let request = self.backend.renew(&self.key, &self.owner, self.ttl);
        let answer = timeout_at(belief.deadline, request).await;
        match answer.map_err(|_| RenewError::Lost(LostReason::Deadline))?? {
            RenewOutcome::Expired => Err(RenewError::Lost(LostReason::Expired)),
            RenewOutcome::Superseded => Err(RenewError::Lost(LostReason::Superseded)),
            RenewOutcome::Renewed => {
                let mut lost = None;
                self.belief.send_modify(|belief| {
                    lost = belief.lost();
                    if lost.is_none() {
                        // Two renewals at once may be answered in either order.
                        belief.deadline = belief.deadline.max(sent_at + self.ttl);
                    }
                });
                lost.map_or(Ok(()), |reason| Err(RenewError::Lost(reason)))
            }
        }
    }

    /// Gives the lock back and says what the server made of it. A lock that is
    /// not ours any more stays as it is.
    pub async fn release(mut self) -> ReleaseOutcome {
        let answer = self.backend.release(&self.key, &self.owner).await;
        let outcome = answer.unwrap_or(ReleaseOutcome::Unknown);
        self.settled = true;
        self.metrics.released(outcome, self.acquired_at.elapsed());
        outcome
    }

    fn mark_lost(&self, reason: LostReason) {
        self.belief.send_if_modified(|belief| {
            let first = belief.lost.is_none();
            belief.lost.get_or_insert(reason);
            first
        });
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.settled {
            self.metrics.ended(self.acquired_at.elapsed());
            release_in_background(
                self.backend.clone(),
                std::mem::take(&mut self.key),
                std::mem::take(&mut self.owner),
            );
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
            .field("belief", &*self.belief.borrow())
            .finish_non_exhaustive()
    }
}

/// How a holder learned that its lease is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LostReason {
    #[error("its time ran out by the holder's own clock")]
    Deadline,
    #[error("the server holds it for nobody any more")]
    Expired,
    #[error("the server holds it for somebody else")]
    Superseded,
}

#[derive(Clone, Debug, Error)]
pub enum RenewError {
    #[error("the lease is lost: {0}")]
    Lost(LostReason),
    /// Not known to be lost: worth another try before the deadline.
    #[error(transparent)]
    Lock(#[from] LockError),
}
