//! What a member has applied: keys with everything they ever were, and leases.

use crate::api::*;
use crate::status::Status;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::Duration;

pub type Key = Vec<u8>;

/// The keys and the leases of a cluster, as of some entry of its log.
pub struct Store {
    /// The revision of the last change.
    pub revision: i64,
    /// What every key was after each of its changes; nothing is ever compacted.
    keys: BTreeMap<Key, Vec<Version>>,
    pub leases: BTreeMap<i64, Lease>,
    /// The changes, in the order of their revisions.
    batches: Vec<Batch>,
    /// The part of the headers of answers that does not depend on the request.
    pub head: ResponseHeader,
}

#[derive(Default)]
pub struct Lease {
    pub ttl_s: i64,
    pub keys: BTreeSet<Key>,
}

impl Lease {
    pub fn ttl(&self) -> Duration {
        Duration::from_secs(self.ttl_s.unsigned_abs())
    }
}

struct Version {
    revision: i64,
    /// None where it was deleted.
    kv: Option<KeyValue>,
}

/// What one revision changed. Every event has what was there before.
pub struct Batch {
    pub revision: i64,
    pub events: Vec<Event>,
}

/// With heartbeats of 100 ms and elections of 1 s, no lease is shorter.
const SHORTEST_LEASE_S: i64 = 2;
const LONGEST_LEASE_S: i64 = 9_000_000_000;

/// Returns the keys that a request names: one, those before `end`, or all that follow.
pub fn span(key: &[u8], end: &[u8]) -> (Bound<Key>, Bound<Key>) {
    let from = Bound::Included(key.to_vec());
    match end {
        [] => (from, Bound::Included(key.to_vec())),
        [0] => (from, Bound::Unbounded),
        // An end before the key names nothing, and is no range of a map.
        _ if end <= key => (from, Bound::Excluded(key.to_vec())),
        _ => (from, Bound::Excluded(end.to_vec())),
    }
}

impl Default for Store {
    fn default() -> Store {
        Store {
            revision: 1,
            keys: BTreeMap::new(),
            leases: BTreeMap::new(),
            batches: Vec::new(),
            head: ResponseHeader::default(),
        }
    }
}

impl Store {
    pub fn header(&self) -> Option<ResponseHeader> {
        Some(ResponseHeader {
            revision: self.revision,
            ..self.head.clone()
        })
    }

    /// Returns the changes since a revision, which is the first of them.
    pub fn changes_since(&self, revision: i64) -> &[Batch] {
        let first = self
            .batches
            .partition_point(|batch| batch.revision < revision);
        &self.batches[first..]
    }

    /// Returns the keys of a range as they were at a revision, in their order.
    pub(crate) fn at<'a>(
        &'a self,
        key: &[u8],
        end: &[u8],
        revision: i64,
    ) -> impl Iterator<Item = &'a KeyValue> + use<'a> {
        let found = self.keys.range(span(key, end));
        found.filter_map(move |(_, versions)| {
            let after = versions.partition_point(|it| it.revision <= revision);
            versions[..after].last()?.kv.as_ref()
        })
    }

    pub fn range(&self, asked: &RangeRequest) -> Result<RangeResponse, Status> {
        if asked.key.is_empty() {
            return Err(Status::empty_key());
        }
        if asked.revision > self.revision {
            return Err(Status::future_revision());
        }
        Ok(self.read(asked, self.revision))
    }

    /// Reads a range. Inside of a transaction, `now` is the revision that it makes.
    pub(crate) fn read(&self, asked: &RangeRequest, now: i64) -> RangeResponse {
        let at = if asked.revision > 0 {
            asked.revision
        } else {
            now
        };
        let found = self.at(&asked.key, &asked.range_end, at);
        let header = Some(ResponseHeader {
            revision: now,
            ..self.head.clone()
        });
        let mut found: Vec<&KeyValue> = found.collect();
        let count = found.len() as i64;
        if asked.count_only {
            let (kvs, more) = (Vec::new(), false);
            return RangeResponse {
                header,
                kvs,
                more,
                count,
            };
        }
        let limit = usize::try_from(asked.limit).unwrap_or(0);
        let bounds = [
            asked.min_mod_revision,
            asked.max_mod_revision,
            asked.min_create_revision,
            asked.max_create_revision,
        ];
        const AS_THEY_ARE: i32 = 0;
        if limit > 0 && asked.sort_order == AS_THEY_ARE && bounds == [0; 4] {
            // It looks no further than it has to, also if it sorts what it has found.
            found.truncate(limit + 1);
        }
        found.retain(|kv| is_within(kv, bounds));
        sort(&mut found, asked);
        let more = limit > 0 && found.len() > limit;
        if more {
            found.truncate(limit);
        }
        let mut kvs: Vec<KeyValue> = found.into_iter().cloned().collect();
        if asked.keys_only {
            kvs.iter_mut().for_each(|kv| kv.value.clear());
        }
        RangeResponse {
            header,
            kvs,
            more,
            count,
        }
    }

    pub fn put(&mut self, asked: &PutRequest) -> Result<PutResponse, Status> {
        self.check_put(asked)?;
        let answer = self.in_batch(|store, events| store.write(asked, events));
        Ok(PutResponse {
            header: self.header(),
            ..answer
        })
    }

    pub(crate) fn check_put(&self, asked: &PutRequest) -> Result<(), Status> {
        if asked.ignore_value || asked.ignore_lease {
            return Err(Status::not_simulated(crate::txn::KEEPS));
        }
        match asked.lease == 0 || self.leases.contains_key(&asked.lease) {
            true => Ok(()),
            false => Err(Status::no_lease()),
        }
    }

    pub fn delete(&mut self, asked: &DeleteRangeRequest) -> Result<DeleteRangeResponse, Status> {
        let answer = self.in_batch(|store, events| store.remove(asked, events));
        Ok(DeleteRangeResponse {
            header: self.header(),
            ..answer
        })
    }

    /// Makes changes of one revision, if there are any.
    pub(crate) fn in_batch<T>(
        &mut self,
        change: impl FnOnce(&mut Store, &mut Vec<Event>) -> T,
    ) -> T {
        let mut events = Vec::new();
        let answer = change(self, &mut events);
        if !events.is_empty() {
            self.revision += 1;
            let revision = self.revision;
            self.batches.push(Batch { revision, events });
        }
        answer
    }

    pub(crate) fn write(&mut self, asked: &PutRequest, events: &mut Vec<Event>) -> PutResponse {
        let revision = self.revision + 1;
        let before = self.at(&asked.key, &[], revision).next().cloned();
        let kv = KeyValue {
            key: asked.key.clone(),
            create_revision: before.as_ref().map_or(revision, |kv| kv.create_revision),
            mod_revision: revision,
            version: before.as_ref().map_or(1, |kv| kv.version + 1),
            value: asked.value.clone(),
            lease: asked.lease,
        };
        self.detach(before.as_ref());
        if let Some(lease) = self.leases.get_mut(&asked.lease) {
            lease.keys.insert(asked.key.clone());
        }
        self.changed(&asked.key, Some(kv.clone()));
        events.push(Event {
            kind: 0,
            kv: Some(kv),
            prev_kv: before.clone(),
        });
        PutResponse {
            header: inner_header(revision),
            prev_kv: before.filter(|_| asked.prev_kv),
        }
    }

    pub(crate) fn remove(
        &mut self,
        asked: &DeleteRangeRequest,
        events: &mut Vec<Event>,
    ) -> DeleteRangeResponse {
        let revision = self.revision + 1;
        let gone = self.at(&asked.key, &asked.range_end, revision);
        let gone: Vec<KeyValue> = gone.cloned().collect();
        for kv in &gone {
            self.detach(Some(kv));
            self.changed(&kv.key, None);
            let left = KeyValue {
                key: kv.key.clone(),
                mod_revision: revision,
                ..KeyValue::default()
            };
            events.push(Event {
                kind: DELETE,
                kv: Some(left),
                prev_kv: Some(kv.clone()),
            });
        }
        DeleteRangeResponse {
            header: inner_header(self.revision + i64::from(!events.is_empty())),
            deleted: gone.len() as i64,
            prev_kvs: if asked.prev_kv { gone } else { Vec::new() },
        }
    }

    fn changed(&mut self, key: &[u8], kv: Option<KeyValue>) {
        let revision = self.revision + 1;
        let versions = self.keys.entry(key.to_vec()).or_default();
        versions.push(Version { revision, kv });
    }

    fn detach(&mut self, kv: Option<&KeyValue>) {
        if let Some(kv) = kv
            && let Some(lease) = self.leases.get_mut(&kv.lease)
        {
            lease.keys.remove(&kv.key);
        }
    }

    pub fn grant(&mut self, asked: &LeaseGrantRequest) -> Result<LeaseGrantResponse, Status> {
        if asked.ttl > LONGEST_LEASE_S {
            return Err(Status::long_lease());
        }
        if self.leases.contains_key(&asked.id) {
            return Err(Status::lease_exists());
        }
        let ttl_s = asked.ttl.max(SHORTEST_LEASE_S);
        let keys = BTreeSet::new();
        self.leases.insert(asked.id, Lease { ttl_s, keys });
        Ok(LeaseGrantResponse {
            header: self.header(),
            id: asked.id,
            ttl: ttl_s,
        })
    }

    pub fn revoke(&mut self, asked: &LeaseRevokeRequest) -> Result<LeaseRevokeResponse, Status> {
        let lease = self.leases.remove(&asked.id);
        let lease = lease.ok_or_else(Status::no_lease)?;
        self.in_batch(|store, events| {
            for key in lease.keys {
                let range_end = Vec::new();
                let prev_kv = false;
                store.remove(
                    &DeleteRangeRequest {
                        key,
                        range_end,
                        prev_kv,
                    },
                    events,
                );
            }
        });
        Ok(LeaseRevokeResponse {
            header: self.header(),
        })
    }
}

/// The headers inside of a transaction say nothing but this.
pub fn inner_header(revision: i64) -> Option<ResponseHeader> {
    Some(ResponseHeader {
        revision,
        ..ResponseHeader::default()
    })
}

fn is_within(kv: &KeyValue, bounds: [i64; 4]) -> bool {
    let [min_mod, max_mod, min_create, max_create] = bounds;
    let is = |number: i64, min: i64, max: i64| {
        (min == 0 || number >= min) && (max == 0 || number <= max)
    };
    is(kv.mod_revision, min_mod, max_mod) && is(kv.create_revision, min_create, max_create)
}

/// Sorts as an etcd does, which keeps the order of a few equals in both directions.
fn sort(found: &mut [&KeyValue], asked: &RangeRequest) {
    const DESCENDING: i32 = 2;
    found.sort_by(|one, other| {
        let order = match asked.sort_target {
            0 => one.key.cmp(&other.key),
            1 => one.version.cmp(&other.version),
            2 => one.create_revision.cmp(&other.create_revision),
            3 => one.mod_revision.cmp(&other.mod_revision),
            _ => one.value.cmp(&other.value),
        };
        match asked.sort_order {
            DESCENDING => order.reverse(),
            _ => order,
        }
    });
}
