use super::{Lease, LockClient, LockError, LockProblem, LostReason};
use crate::model::ReleaseOutcome;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, PoisonError, Weak};
use tokio::time::{Instant, timeout_at};

/// Locks that their owner may take again while it holds them.
///
/// One of these is one owner, and so are its clones; there is no thread or
/// task identity behind it. Taking a lock again costs no request and keeps the
/// token: it is the same grant. A renewal prolongs it for every hold, and the
/// last release frees it. What is lost is lost for every hold as well: whoever
/// asks again then waits for a new grant, with a new token.
///
/// ```no_run
/// # use fencepost::dlock::{LockClient, ReentrantLocks, Released};
/// # use tokio::time::Instant;
/// # async fn example(locks: LockClient, deadline: Instant) -> Result<(), fencepost::dlock::LockError> {
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
    slots: Arc<std::sync::Mutex<Slots>>,
}

/// One hold of several on the same grant; it can do what its [`Lease`] can.
/// Dropping the last one releases in the background.
#[derive(Debug)]
pub struct Hold {
    lease: Arc<Lease>,
}

/// What became of the grant when one hold was given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// Other holds on it are left.
    StillHeld {
        holds: usize,
    },
    Last(ReleaseOutcome),
}

/// Locked while its key is being acquired, so that one owner does not wait for
/// itself.
type Slot = Arc<tokio::sync::Mutex<Weak<Lease>>>;

#[derive(Default)]
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

    /// Another hold on what this owner has already, or a new grant.
    pub async fn acquire(&self, key: &str, deadline: Instant) -> Result<Hold, LockError> {
        let slot = self.slot(key);
        let started_at = Instant::now();
        let Ok(mut slot) = timeout_at(deadline, slot.lock()).await else {
            let waited = started_at.elapsed();
            let problem = LockProblem::Timeout { waited, last: None };
            return Err(self.client.error(key, problem));
        };
        if let Some(lease) = slot.upgrade().filter(|lease| !lease.is_lost()) {
            return Ok(Hold { lease });
        }
        let lease = Arc::new(self.client.acquire(key, deadline).await?);
        *slot = Arc::downgrade(&lease);
        Ok(Hold { lease })
    }

    fn slot(&self, key: &str) -> Slot {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
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
    /// Forgets keys that nobody holds or waits for, now and then: each time
    /// the number of keys has doubled since.
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
    /// How many holds there are on this grant, this one included.
    pub fn holds(&self) -> usize {
        Arc::strong_count(&self.lease)
    }

    /// Another hold on this very grant, unless it is lost. Unlike
    /// [`ReentrantLocks::acquire`] it never waits for a new one.
    pub fn reenter(&self) -> Result<Hold, LostReason> {
        match self.lost_reason() {
            Some(reason) => Err(reason),
            None => Ok(Hold {
                lease: Arc::clone(&self.lease),
            }),
        }
    }

    /// Gives this hold back, and the lock with it if it was the last.
    pub async fn release(self) -> Released {
        match self.into_lease() {
            Ok(lease) => Released::Last(lease.release().await),
            Err(holds) => Released::StillHeld { holds },
        }
    }

    /// Gives this hold back; the last one becomes the lease, which is then the
    /// caller's to release. Otherwise says how many holds are left.
    pub fn into_lease(self) -> Result<Lease, usize> {
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
