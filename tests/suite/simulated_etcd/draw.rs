use super::pair::{MARK_WATCH, Pair, Shown, show};
use etcd_client::{
    Compare, CompareOp, DeleteOptions, GetOptions, LeaseGrantOptions, LeaseTimeToLiveOptions,
    LockOptions, PutOptions, SortOrder, SortTarget, Txn, TxnOp, WatchFilterType, WatchOptions,
};
use fencing_lock::servers::EtcdWire;
use std::collections::BTreeSet;

/// So few that a real etcd keeps the order of equals when it sorts them.
const KEYS: [&str; 7] = ["a", "a/1", "a/2", "b", "b0", "c", ""];
const VALUES: [&str; 4] = ["", "0", "x", "zz"];
const LOCKS: [&str; 2] = ["l", "l/l"];
/// None ends by itself while the test runs.
const TTL_S: i64 = 100_000;
const WATCHES: i64 = 6;

pub struct Draw {
    pair: Pair,
    random: fastrand::Rng,
    /// The last revision that an answer told.
    revision: i64,
    watches: BTreeSet<i64>,
    last_lease: i64,
}

impl Draw {
    pub fn new(pair: Pair, seed: u64) -> Draw {
        Draw {
            pair,
            random: fastrand::Rng::with_seed(seed),
            revision: 1,
            watches: BTreeSet::new(),
            last_lease: 1_000,
        }
    }

    pub async fn play(mut self, steps: usize) {
        for step in 0..steps {
            match self.random.u32(..200) {
                0..60 => self.put().await,
                60..105 => self.get().await,
                105..125 => self.delete().await,
                125..165 => self.txn().await,
                165..185 => self.lease().await,
                185..190 => self.lock().await,
                190..197 => self.watch().await,
                _ => self.unusual().await,
            }
            if step % 500 == 0 {
                self.hand_over().await;
            }
            if step % 25 == 0 {
                self.pair.same_events().await;
            }
        }
        let events = self.pair.all_events().await;
        assert!(events > steps / 4, "{events} events");
        assert!(
            self.pair.compared >= steps,
            "{} of {steps}",
            self.pair.compared
        );
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.random.usize(..of.len())]
    }

    /// Draws a key; rarely none, which is refused.
    fn key(&mut self) -> &'static str {
        let all = if self.random.u8(..50) == 0 {
            KEYS.len()
        } else {
            KEYS.len() - 1
        };
        self.one(&KEYS[..all])
    }

    /// Draws the name of a lease, which may not be there; mostly none.
    fn lease_id(&mut self) -> i64 {
        if self.random.bool() {
            0
        } else {
            self.random.i64(1..6)
        }
    }

    fn a_revision(&mut self) -> i64 {
        self.random.i64(1..=self.revision + 2)
    }

    /// Asks both, and remembers the revision that the answer tells.
    async fn same(&mut self, what: String, ask: impl AsyncFn(EtcdWire) -> Shown) {
        let Ok(answer) = self.pair.same(what, ask).await else {
            return;
        };
        let told = answer.split("revision: ").nth(1).unwrap_or_default();
        let digits = told.split(|c: char| !c.is_ascii_digit()).next();
        if let Some(Ok(revision)) = digits.map(str::parse::<i64>) {
            self.revision = self.revision.max(revision);
        }
    }

    fn put_options(&mut self) -> PutOptions {
        let options = PutOptions::new().with_lease(self.lease_id());
        if self.random.bool() {
            options.with_prev_key()
        } else {
            options
        }
    }

    async fn put(&mut self) {
        let (key, value, options) = (self.key(), self.one(&VALUES), self.put_options());
        let what = format!("put {key:?} {value:?} {options:?}");
        self.same(what, async |mut wire| {
            show(wire.kv.put(key, value, Some(options.clone())).await)
        })
        .await;
    }

    fn get_options(&mut self) -> GetOptions {
        let mut options = GetOptions::new();
        options = match self.random.u8(..5) {
            0 => options,
            1 => options.with_range(self.key()),
            2 => options.with_from_key(),
            _ => options.with_prefix(),
        };
        if self.random.bool() {
            let target = self.one(&[
                SortTarget::Key,
                SortTarget::Version,
                SortTarget::Create,
                SortTarget::Mod,
                SortTarget::Value,
            ]);
            let order = self.one(&[SortOrder::None, SortOrder::Ascend, SortOrder::Descend]);
            options = options.with_sort(target, order);
        }
        if self.random.u8(..3) == 0 {
            options = options.with_limit(self.random.i64(0..4));
        }
        for bound in 0..6 {
            if self.random.u8(..8) > 0 {
                continue;
            }
            let revision = self.a_revision();
            options = match bound {
                0 => options.with_revision(revision),
                1 => options.with_min_mod_revision(revision),
                2 => options.with_max_mod_revision(revision),
                3 => options.with_min_create_revision(revision),
                4 => options.with_max_create_revision(revision),
                _ => options.with_serializable(),
            };
        }
        match self.random.u8(..8) {
            0 => options.with_count_only(),
            1 => options.with_keys_only(),
            _ => options,
        }
    }

    async fn get(&mut self) {
        let (key, options) = (self.key(), self.get_options());
        let what = format!("get {key:?} {options:?}");
        self.same(what, async |mut wire| {
            show(wire.kv.get(key, Some(options.clone())).await)
        })
        .await;
    }

    fn delete_options(&mut self) -> DeleteOptions {
        let options = match self.random.u8(..8) {
            0 => DeleteOptions::new().with_range(self.key()),
            1 => DeleteOptions::new().with_prefix(),
            _ => DeleteOptions::new(),
        };
        if self.random.bool() {
            options.with_prev_key()
        } else {
            options
        }
    }

    async fn delete(&mut self) {
        let (key, options) = (self.key(), self.delete_options());
        let what = format!("delete {key:?} {options:?}");
        self.same(what, async |mut wire| {
            show(wire.kv.delete(key, Some(options.clone())).await)
        })
        .await;
    }

    fn compare(&mut self) -> Compare {
        let (key, number) = (self.key(), self.random.i64(0..4));
        let revision = self.a_revision();
        let is = self.one(&[
            CompareOp::Equal,
            CompareOp::NotEqual,
            CompareOp::Greater,
            CompareOp::Less,
        ]);
        let compare = match self.random.u8(..5) {
            0 => Compare::version(key, is, number),
            1 => Compare::create_revision(key, is, if number == 0 { 0 } else { revision }),
            2 => Compare::mod_revision(key, is, if number == 0 { 0 } else { revision }),
            3 => Compare::value(key, is, self.one(&VALUES)),
            _ => Compare::lease(key, is, number),
        };
        if self.random.u8(..4) == 0 {
            compare.with_prefix()
        } else {
            compare
        }
    }

    fn operation(&mut self) -> TxnOp {
        let key = self.key();
        match self.random.u8(..5) {
            0 | 1 => TxnOp::put(key, self.one(&VALUES), Some(self.put_options())),
            2 => TxnOp::delete(key, Some(self.delete_options())),
            _ => TxnOp::get(key, Some(self.get_options())),
        }
    }

    async fn txn(&mut self) {
        let compares: Vec<Compare> = (0..self.random.u8(..3)).map(|_| self.compare()).collect();
        let mut operations = || -> Vec<TxnOp> {
            let count = self.random.u8(..4);
            (0..count).map(|_| self.operation()).collect()
        };
        let (then, otherwise) = (operations(), operations());
        let txn = Txn::new().when(compares).and_then(then).or_else(otherwise);
        let what = format!("txn {txn:?}");
        self.same(what, async |mut wire| show(wire.kv.txn(txn.clone()).await))
            .await;
    }

    async fn lease(&mut self) {
        let id = self.random.i64(1..6);
        match self.random.u8(..6) {
            0..3 => self.grant(id).await,
            3 => {
                self.same(format!("revoke {id}"), async |mut wire| {
                    show(wire.lease.revoke(id).await)
                })
                .await;
            }
            4 => {
                self.same(format!("time to live of {id}"), async |wire| {
                    left(wire, id).await
                })
                .await;
            }
            _ => {
                self.same(format!("keep {id} alive"), async |mut wire| {
                    let kept = wire.lease.keep_alive(id).await;
                    show(kept.map(|(keeper, _)| keeper.id()))
                })
                .await;
            }
        }
    }

    async fn grant(&mut self, id: i64) {
        let options = LeaseGrantOptions::new().with_id(id);
        self.same(format!("grant {id}"), async |mut wire| {
            show(wire.lease.grant(TTL_S, Some(options.clone())).await)
        })
        .await;
    }

    /// Takes and frees a lock that nobody waits for.
    async fn lock(&mut self) {
        let lease = self.random.i64(1..6);
        let name = self.one(&LOCKS);
        let options = LockOptions::new().with_lease(lease);
        self.same(format!("lock {name} with {lease}"), async |mut wire| {
            show(wire.lock.lock(name, Some(options.clone())).await)
        })
        .await;
        let key = format!("{name}/{lease:x}");
        self.same(format!("unlock {key}"), async |mut wire| {
            show(wire.lock.unlock(key.as_str()).await)
        })
        .await;
    }

    /// Lets one wait in the line for a lock, and get it: in the end by an unlock or a lease that is over.
    async fn hand_over(&mut self) {
        let (first, second) = (self.last_lease + 1, self.last_lease + 2);
        self.last_lease = second;
        self.grant(first).await;
        self.grant(second).await;
        let is_revoked = self.random.bool();
        let what = format!("{first} hands a lock to {second}, revoked: {is_revoked}");
        self.same(what, async |wire| {
            let (mut locks, mut kv, mut leases) = (wire.lock, wire.kv, wire.lease);
            let options = LockOptions::new().with_lease(first);
            let held = locks.lock("line", Some(options)).await;
            let key = held.as_ref().map(|held| held.key().to_vec());
            let key = key.unwrap_or_default();
            let options = LockOptions::new().with_lease(second);
            let mut next = locks.clone();
            let waits = tokio::spawn(async move { next.lock("line", Some(options)).await });
            let in_line = GetOptions::new().with_prefix().with_count_only();
            while kv
                .get("line/", Some(in_line.clone()))
                .await
                .map_or(0, |it| it.count())
                < 2
            {}
            let ended = match is_revoked {
                true => show(leases.revoke(first).await)?,
                false => show(locks.unlock(key).await)?,
            };
            let handed = show(waits.await.expect("no panic"))?;
            Ok(format!("{} {ended} {handed}", show(held)?))
        })
        .await;
        for lease in [first, second] {
            self.same(format!("revoke {lease}"), async |mut wire| {
                show(wire.lease.revoke(lease).await)
            })
            .await;
        }
    }

    async fn watch(&mut self) {
        let id = MARK_WATCH + 1 + self.random.i64(..WATCHES);
        if self.watches.remove(&id) {
            self.pair.end_watch(id).await;
            return;
        }
        let mut options = WatchOptions::new().with_watch_id(id);
        if self.random.bool() {
            options = options.with_prefix();
        }
        if self.random.bool() {
            options = options.with_prev_key();
        }
        match self.random.u8(..6) {
            0 => options = options.with_filters([WatchFilterType::NoPut]),
            1 => options = options.with_filters([WatchFilterType::NoDelete]),
            _ => {}
        }
        let key = self.one(&KEYS[..KEYS.len() - 1]);
        self.pair.watch(key, &options).await;
        self.watches.insert(id);
        // It begins at both before anything else happens.
        self.pair.same_events().await;
    }

    async fn unusual(&mut self) {
        match self.random.u8(..3) {
            0 => {
                let id = self.random.i64(1..6);
                self.same("a lease for too long".to_owned(), async |mut wire| {
                    let options = LeaseGrantOptions::new().with_id(id);
                    show(wire.lease.grant(10_000_000_000, Some(options)).await)
                })
                .await;
            }
            1 => {
                let key = self.key();
                let twice = || TxnOp::put(key, "x", None);
                let gone = TxnOp::delete("a", Some(DeleteOptions::new().with_prefix()));
                let txn = match self.random.bool() {
                    true => Txn::new().and_then([twice(), twice()]),
                    false => Txn::new().or_else([gone, twice()]),
                };
                let what = format!("{txn:?}");
                self.same(what, async |mut wire| show(wire.kv.txn(txn.clone()).await))
                    .await;
            }
            _ => {
                let options = GetOptions::new().with_all_keys().with_count_only();
                self.same("a count".to_owned(), async |mut wire| {
                    show(wire.kv.get("", Some(options.clone())).await)
                })
                .await;
            }
        }
    }
}

/// Shows a lease. The time that is left passes, and its keys have no order.
async fn left(mut wire: EtcdWire, id: i64) -> Shown {
    let options = LeaseTimeToLiveOptions::new().with_keys();
    let answer = wire.lease.time_to_live(id, Some(options)).await;
    show(answer.map(|answer| {
        let mut keys = answer.keys().to_vec();
        keys.sort();
        let is_fresh = answer.ttl() > TTL_S - 10_000;
        let is_gone = answer.ttl() == -1;
        (is_fresh, is_gone, answer.granted_ttl(), keys)
    }))
}
