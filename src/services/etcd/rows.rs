use crate::services::observe::lines::{End, Lines, LockPlace};
use crate::services::observe::*;

/// Turns what an etcd reports about keys into rows of `locks.jsonl`.
pub(super) struct EtcdRows {
    layout: Layout,
    lines: Lines,
}

/// A key that was written.
pub(super) struct Written<'a> {
    pub(super) key: &'a [u8],
    pub(super) owner: &'a [u8],
    pub(super) create_revision: i64,
    pub(super) lease: i64,
}

impl EtcdRows {
    pub(super) fn new(node: &str, layout: Layout) -> EtcdRows {
        EtcdRows {
            layout,
            lines: Lines::new(node),
        }
    }

    pub(super) fn written(&mut self, at_ns: u64, place: &Written<'_>) -> Option<LockEvent> {
        let lock = self.layout.lock_of_place(place.key)?;
        let owner = readable(place.owner);
        let standing = LockPlace {
            owner: Some(owner).filter(|owner| !owner.is_empty()),
            token: u64::try_from(place.create_revision).ok().map(FencingToken),
            lease: place.lease,
        };
        let age = (place.create_revision, place.key.to_vec());
        self.lines.joined(at_ns, &lock, age, standing)
    }

    /// Returns the lease that decides what the deletion of a key means, if it means anything.
    pub(super) fn lease_of_holder(&self, key: &[u8]) -> Option<i64> {
        let lock = self.layout.lock_of_place(key)?;
        let lease = self.lines.lease_of_holder(&lock, key)?;
        Some(lease).filter(|lease| *lease != 0)
    }

    /// `lease_lives` says whether that lease was still there.
    pub(super) fn deleted(&mut self, at_ns: u64, key: &[u8], lease_lives: bool) -> Vec<LockEvent> {
        let Some(lock) = self.layout.lock_of_place(key) else {
            return Vec::new();
        };
        let end = match lease_lives {
            true => End::Deleted,
            false => End::WithItsLease,
        };
        self.lines.left(at_ns, &lock, key, end)
    }
}
