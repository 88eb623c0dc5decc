//! An observer inside a simulated member of an etcd: it sees every change as it happens, and makes the same rows of
//! it as one that connects to a real one.

use super::PROGRAM;
use super::rows::{EtcdRows, Written};
use crate::services::observe::*;

pub struct EtcdBystander(EtcdRows);

impl EtcdBystander {
    pub fn new(node: &str, keys: Option<&KeyTemplate>) -> EtcdBystander {
        let layout = Layout::new(PROGRAM.own_keys, keys);
        EtcdBystander(EtcdRows::new(node, layout))
    }

    /// Makes a row of a key that was written, if it is one of a lock.
    pub fn written(
        &mut self,
        key: &[u8],
        owner: &[u8],
        create_revision: i64,
        lease: i64,
    ) -> Option<LockEvent> {
        let written = Written {
            key,
            owner,
            create_revision,
            lease,
        };
        self.0.written(raw_monotonic_ns(), &written)
    }

    /// Makes rows of a key that was deleted. `has_lease` returns whether a lease is there after it.
    pub fn deleted(&mut self, key: &[u8], has_lease: impl Fn(i64) -> bool) -> Vec<LockEvent> {
        let lease = self.0.lease_of_holder(key);
        let lease_lives = lease.is_none_or(has_lease);
        self.0.deleted(raw_monotonic_ns(), key, lease_lives)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_an_etcd_that_goes_with_its_lease_has_expired() {
        let mut bystander = EtcdBystander::new("etcd-1", None);
        let mut told = |lease_lives: bool, revision: i64| {
            let place = format!("/locks/k/{revision}");
            let granted = bystander.written(place.as_bytes(), b"a", revision, 7);
            let ended = bystander.deleted(place.as_bytes(), |lease| lease == 7 && lease_lives);
            let rows = granted.into_iter().chain(ended);
            rows.map(|row| (row.kind, row.token.unwrap().0))
                .collect::<Vec<_>>()
        };
        let granted = LockEventKind::Granted;
        assert_eq!(told(true, 3), [(granted, 3), (LockEventKind::Released, 3)]);
        assert_eq!(told(false, 4), [(granted, 4), (LockEventKind::Expired, 4)]);
    }
}
