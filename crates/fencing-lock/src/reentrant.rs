use super::{Lease, LockClient, LockError, LockProblem, LostReason};
use crate::ReleaseOutcome;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Weak};
use tokio::time::{Instant, timeout_at};

/// Locks that their owner may acquire again while it holds them.
///
/// Each instance is one owner, together with its clones; it does not depend on threads or
/// tasks. Acquiring a lock again costs no request and keeps the token: it is the same
/// grant. A renewal prolongs it for every hold, and the last release frees it. A lost
/// grant is lost for every hold as well: the next acquire waits for a new grant, with a
/// new token.
///
/// ```no_run
/// # use fencing_lock::{LockClient, ReentrantLocks, Released};
/// # use tokio::time::Instant;
/// # async fn example(locks: LockClient, deadline: Instant) -> Result<(), fencing_lock::LockError> {
/// let locks = ReentrantLocks::new(locks);
/// let outer = locks.acquire("account-42", deadline).await?;
/// let inner = locks.acquire("account-42", deadline).await?;
/// assert_eq!(inner.fence(), outer.fence());
/// assert_eq!(inner.release().await, Released::StillHeld { holds: 1 });
/// outer.renew().await.expect("still ours");
/// outer.release().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ReentrantLocks {
    client: LockClient,
    slots: Arc<parking_lot::Mutex<Slots>>,
}

/// One of several holds on the same grant; it can do what its [`Lease`] can. Dropping the
/// last one releases in the background.
#[derive(Debug)]
pub struct Hold {
    lease: Arc<Lease>,
    slots: Arc<parking_lot::Mutex<Slots>>,
}

/// The state of the grant after one hold was released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// Other holds on the grant are left.
    StillHeld {
        holds: usize,
    },
    Last(ReleaseOutcome),
}

/// A lease that is locked while its key is being acquired, so that one owner does not
/// wait for itself.
type Slot = Arc<tokio::sync::Mutex<Weak<Lease>>>;

/// The grants of one owner. Holds are counted only while this is locked: somebody who looks
/// whether a grant is lost has it for a moment, and is no hold.
#[derive(Debug, Default)]
struct Slots {
    by_key: HashMap<String, Slot>,
    tidy_at: usize,
}

impl ReentrantLocks {
    pub fn new(client: LockClient) -> ReentrantLocks {
        ReentrantLocks {
            client,
            slots: Arc::default(),
        }
    }

    /// Returns another hold on the grant that this owner already has, or a new grant.
    pub async fn acquire(&self, key: &str, deadline: Instant) -> Result<Hold, LockError> {
        let slot = self.slot(key);
        let started_at = Instant::now();
        let Ok(mut slot) = timeout_at(deadline, slot.lock()).await else {
            let waited = started_at.elapsed();
            let problem = LockProblem::Timeout { waited, last: None };
            return Err(self.client.error(key, problem));
        };
        if let Some(lease) = self.still_held(&slot) {
            return Ok(self.hold(lease));
        }
        let lease = Arc::new(self.client.acquire(key, deadline).await?);
        *slot = Arc::downgrade(&lease);
        Ok(self.hold(lease))
    }

    fn still_held(&self, slot: &Weak<Lease>) -> Option<Arc<Lease>> {
        let _counting = self.slots.lock();
        slot.upgrade().filter(|lease| !lease.is_lost())
    }

    fn hold(&self, lease: Arc<Lease>) -> Hold {
        let slots = self.slots.clone();
        Hold { lease, slots }
    }

    fn slot(&self, key: &str) -> Slot {
        let mut slots = self.slots.lock();
        if let Some(slot) = slots.by_key.get(key) {
            return Arc::clone(slot);
        }
        slots.tidy();
        let slot = Slot::default();
        slots.by_key.insert(key.to_owned(), Arc::clone(&slot));
        slot
    }
}

impl Slots {
    /// Drops keys that nobody holds or waits for, each time the number of keys has
    /// doubled.
    fn tidy(&mut self) {
        if self.by_key.len() < self.tidy_at {
            return;
        }
        self.by_key.retain(|_, slot| {
            let in_use = Arc::strong_count(slot) > 1;
            in_use || slot.try_lock().is_ok_and(|held| held.strong_count() > 0)
        });
        self.tidy_at = (2 * self.by_key.len()).max(16);
    }
}

impl Hold {
    /// Returns the number of holds on this grant, including this one.
    pub fn holds(&self) -> usize {
        Arc::strong_count(&self.lease)
    }

    /// Returns another hold on this very grant, unless it is lost. Unlike
    /// [`ReentrantLocks::acquire`] it never waits for a new one.
    pub fn reenter(&self) -> Result<Hold, LostReason> {
        match self.lost_reason() {
            Some(reason) => Err(reason),
            None => Ok(Hold {
                lease: Arc::clone(&self.lease),
                slots: Arc::clone(&self.slots),
            }),
        }
    }

    /// Releases this hold, and the lock with it if it was the last.
    pub async fn release(self) -> Released {
        match self.into_lease() {
            Ok(lease) => Released::Last(lease.release().await),
            Err(holds) => Released::StillHeld { holds },
        }
    }

    /// Releases this hold and returns the number of holds that are left. If it was the
    /// last, returns the lease, which the caller has to release.
    pub fn into_lease(self) -> Result<Lease, usize> {
        let _counting = self.slots.lock();
        let others = Arc::strong_count(&self.lease) - 1;
        Arc::into_inner(self.lease).ok_or(others)
    }
}

impl Deref for Hold {
    type Target = Lease;

    fn deref(&self) -> &Lease {
        &self.lease
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::*;
    use async_trait::async_trait;
    use std::sync::Barrier;
    use std::time::Duration;

    /// Grants every lock, and says of each renewal that it is too late.
    struct Expiring;

    const TTL: Duration = Duration::from_secs(600);

    #[async_trait]
    impl LockBackend for Expiring {
        fn name(&self) -> &'static str {
            "expiring"
        }

        fn node(&self) -> &str {
            "nowhere"
        }

        async fn try_acquire(&self, _: Ask<'_>) -> Result<Attempt, LockError> {
            let now = Instant::now();
            let grant = Grant::new(FencingToken(1), now, TTL, Term::Until(now + TTL));
            Ok(Attempt::Granted(grant.expect("time is left")))
        }

        async fn renew(&self, _: Ask<'_>) -> Result<RenewOutcome, LockError> {
            Ok(RenewOutcome::Expired)
        }

        async fn release(&self, _: &str, _: &str) -> Result<ReleaseOutcome, LockError> {
            Ok(ReleaseOutcome::Expired)
        }
    }

    #[tokio::test]
    async fn who_looks_at_a_lost_grant_is_no_hold() {
        let settings = LockSettings { ttl: TTL, seed: 1 };
        let client = LockClient::new(Arc::new(Expiring), settings, LockMetrics::default());
        let locks = ReentrantLocks::new(client.unwrap());
        let soon = || Instant::now() + Duration::from_secs(60);
        for _ in 0..500 {
            let hold = locks.acquire("k", soon()).await.unwrap();
            hold.renew().await.unwrap_err();
            let (lease, together) = (Arc::downgrade(&hold.lease), Arc::new(Barrier::new(2)));
            let looking = std::thread::spawn({
                let (locks, together) = (locks.clone(), together.clone());
                move || {
                    together.wait();
                    while lease.strong_count() > 0 {
                        assert!(locks.still_held(&lease).is_none());
                    }
                }
            });
            together.wait();
            let last = hold.into_lease();
            assert!(last.is_ok(), "held by {last:?} more");
            looking.join().unwrap();
        }
    }
}
