//! Observers inside a simulated server: they see every change as it happens, and make the same
//! rows of it as those that connect to a real one.

use super::etcd_rows::{EtcdRows, Written};
use super::redis_rows::{Next, Observed};
use super::*;
use crate::services::{etcd, redis::REDIS};

/// An observer inside a Redis.
pub struct RedisBystander {
    layout: Layout,
    observed: Observed,
}

impl RedisBystander {
    pub fn new(node: &str, keys: Option<&KeyTemplate>) -> RedisBystander {
        let layout = Layout::new(REDIS.own_keys, keys);
        let observed = Observed::new(node, layout.is_own());
        RedisBystander { layout, observed }
    }

    /// Makes rows of the changes of one command: keys and what was done to them. `text` returns
    /// the text that a key has after it.
    pub fn changed<'a>(
        &mut self,
        changes: impl IntoIterator<Item = (&'a str, &'a str)>,
        text: impl Fn(&str) -> Option<Vec<u8>>,
    ) -> Vec<LockEvent> {
        let at_ns = raw_monotonic_ns();
        let mut rows = Vec::new();
        let mut asked = Vec::new();
        for (key, command) in changes {
            let Some(name) = self.layout.name_of(key) else {
                continue;
            };
            let lock = self.layout.lock(name);
            match self.observed.notified(at_ns, lock, command) {
                Next::Rows(complete) => rows.extend(complete),
                Next::Ask => asked.push(name),
            }
        }
        for name in asked {
            let keys = self.layout.keys(name);
            let owner = text(&keys[0]).map(|owner| readable(&owner));
            let token = keys.get(1).and_then(|counter| text(counter));
            let token = token.and_then(|token| String::from_utf8_lossy(&token).parse().ok());
            let lock = self.layout.lock(name);
            let answered = self.observed.answered(lock, owner, token.map(FencingToken));
            rows.extend(answered);
        }
        rows
    }
}

/// An observer inside a member of an etcd.
pub struct EtcdBystander(EtcdRows);

impl EtcdBystander {
    pub fn new(node: &str, keys: Option<&KeyTemplate>) -> EtcdBystander {
        let layout = Layout::new(etcd::PROGRAM.own_keys, keys);
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

    #[test]
    fn the_rows_of_a_command_are_complete_with_it() {
        let mut bystander = RedisBystander::new("redis", None);
        let mut kinds = |changes: &[(&'static str, &'static str)]| {
            let text = |key: &str| match key {
                "lock:{k}" => Some(b"a".to_vec()),
                "fence:{k}" => Some(b"7".to_vec()),
                _ => None,
            };
            let rows = bystander.changed(changes.iter().copied(), text);
            let words = rows.into_iter().map(|row| {
                let (owner, token) = (row.owner.unwrap(), row.token.unwrap());
                format!("{:?} {} {owner} {token}", row.kind, row.key)
            });
            words.collect::<Vec<String>>()
        };
        let grant = [
            ("fence:{k}", "incrby"),
            ("lock:{k}", "set"),
            ("lock:{k}", "expire"),
        ];
        assert_eq!(kinds(&grant), ["Granted k a 7"]);
        assert_eq!(kinds(&[("lock:{k}", "expire")]), ["Renewed k a 7"]);
        assert_eq!(kinds(&[("lock:{k}", "expired")]), ["Expired k a 7"]);
    }
}
