//! A bystander at the lock servers: hears everything a little later, in the server's order.

use super::settings::{MS, US};
use super::world::{KEYS, World};
use fencepost::model::{FencingToken, LockEvent, LockEventKind};

pub struct Observer {
    watches: bool,
    pub rows: Vec<LockEvent>,
    /// When it last heard something of each node.
    heard: [(&'static str, u64); 3],
    /// It comes back some time after its server does, and misses what happens before.
    pub blind_until: [u64; 2],
}

impl Observer {
    pub fn new(watches: bool) -> Observer {
        Observer {
            watches,
            rows: Vec::new(),
            heard: [("redis", 0), ("etcd", 0), ("redis-replica", 0)],
            blind_until: [0; 2],
        }
    }
}

impl World {
    pub fn observe(
        &mut self,
        service: usize,
        key: usize,
        kind: LockEventKind,
        owner: &str,
        token: u64,
    ) {
        if !self.observer.watches || self.now < self.observer.blind_until[service] {
            return;
        }
        let node = self.servers[service].node;
        let has_replica = self.replica_follows();
        self.heard(node, key, kind, owner, token);
        if has_replica && node == "redis" {
            self.heard("redis-replica", key, kind, owner, token);
        }
    }

    fn heard(
        &mut self,
        node: &'static str,
        key: usize,
        kind: LockEventKind,
        owner: &str,
        token: u64,
    ) {
        let late = match self.random.u32(..12) {
            0 => 400 * MS,
            1..4 => 30 * MS,
            _ => 2 * MS,
        };
        let at = self.now + 20 * US + self.random.u64(..late);
        let heard = self.observer.heard.iter_mut();
        let (_, last) = heard
            .into_iter()
            .find(|(name, _)| *name == node)
            .expect("a known node");
        *last = at.max(*last + US);
        let at_ns = *last;
        self.observer.rows.push(LockEvent {
            at_ns,
            node: node.to_owned(),
            key: KEYS[key].to_owned(),
            kind,
            owner: Some(owner.to_owned()),
            token: self.settings.tokens.then_some(FencingToken(token)),
        });
    }
}
