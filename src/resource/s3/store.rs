//! Buckets and objects, without I/O: the decision whether a change is allowed, and what is there.

use super::super::commit::Ledger;
use super::super::limits::MAX_HELD_BYTES;
use super::row::{Action, Condition, S3Row};
use crate::model::{RowOutcome, RowValue};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::ops::Bound;

/// All that the log says. Replaying its rows gives the same again.
#[derive(Default)]
pub(super) struct Store {
    buckets: BTreeMap<String, Bucket>,
    held_bytes: usize,
    position: u64,
}

type Bucket = BTreeMap<String, Vec<Version>>;

/// One version of an object. A version without a body says that the object was deleted.
#[derive(Clone, Debug)]
pub(super) struct Version {
    pub id: u64,
    pub etag: String,
    pub time_s: u64,
    pub meta: BTreeMap<String, String>,
    pub body: Option<Bytes>,
}

#[derive(Clone, Debug)]
pub(super) struct Change {
    pub action: Action,
    pub bucket: String,
    pub key: String,
    pub condition: Condition,
    pub meta: BTreeMap<String, String>,
    pub body: Bytes,
    pub time_s: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Changed {
    Done { etag: String, id: u64 },
    ConditionFailed,
    NoSuchKey,
    NoSuchBucket,
    BucketExists,
    BucketNotEmpty,
    Full,
}

pub(super) enum Question {
    Buckets,
    Bucket(String),
    Object {
        bucket: String,
        key: String,
        version: Option<u64>,
    },
    List {
        bucket: String,
        prefix: String,
        delimiter: Option<String>,
        after: String,
        most: usize,
    },
}

pub(super) enum Found {
    Nothing,
    NoSuchBucket,
    Buckets(Vec<String>),
    Object(Version),
    List(Listing),
}

#[derive(Default)]
pub(super) struct Listing {
    pub objects: Vec<(String, Version)>,
    pub prefixes: Vec<String>,
    /// Where to go on, if there is more.
    pub last: Option<String>,
}

/// The size of a version without its texts, including the overhead of the map.
const VERSION_BYTES: usize = 256;

impl Version {
    fn bytes(&self, key: &str) -> usize {
        held_bytes(key, &self.meta, self.body.as_ref().map_or(0, Bytes::len))
    }
}

fn held_bytes(key: &str, meta: &BTreeMap<String, String>, body: usize) -> usize {
    let meta = meta.iter().map(|(name, value)| name.len() + value.len());
    VERSION_BYTES + key.len() + meta.sum::<usize>() + body
}

impl Store {
    /// Applies a row of the log as it was decided.
    pub fn replay(&mut self, row: S3Row) {
        self.position = row.seq;
        if row.outcome == RowOutcome::Accepted {
            self.apply(&row);
        }
    }

    fn current(&self, bucket: &str, key: &str) -> Option<&Version> {
        let latest = self.buckets.get(bucket)?.get(key)?.last()?;
        latest.body.is_some().then_some(latest)
    }

    fn apply(&mut self, row: &S3Row) {
        match row.action {
            Action::MakeBucket => drop(self.buckets.entry(row.bucket.clone()).or_default()),
            Action::RemoveBucket => {
                let removed = self.buckets.remove(&row.bucket).into_iter().flatten();
                let bytes = removed.map(|(key, versions)| {
                    let versions = versions.iter().map(|version| version.bytes(&key));
                    versions.sum::<usize>()
                });
                self.held_bytes -= bytes.sum::<usize>();
            }
            Action::Put | Action::Delete => {
                let version = Version {
                    id: row.seq,
                    etag: row.etag.clone().unwrap_or_default(),
                    time_s: row.time_s,
                    meta: row.meta.clone(),
                    body: match row.action {
                        Action::Put => row.value.as_ref(),
                        _ => None,
                    }
                    .map(|value| Bytes::copy_from_slice(value.as_bytes())),
                };
                self.held_bytes += version.bytes(&row.key);
                let bucket = self.buckets.entry(row.bucket.clone()).or_default();
                bucket.entry(row.key.clone()).or_default().push(version);
            }
        }
    }

    /// Returns why a change is not even compared.
    fn impossible(&self, change: &Change) -> Option<Changed> {
        let Some(bucket) = self.buckets.get(&change.bucket) else {
            return (change.action != Action::MakeBucket).then_some(Changed::NoSuchBucket);
        };
        let is_gone = |versions: &Vec<Version>| versions.last().is_none_or(|it| it.body.is_none());
        match change.action {
            Action::MakeBucket => Some(Changed::BucketExists),
            Action::RemoveBucket if !bucket.values().all(is_gone) => Some(Changed::BucketNotEmpty),
            Action::RemoveBucket => None,
            // What is there can always be deleted, which at most doubles what is held.
            Action::Delete if self.current(&change.bucket, &change.key).is_some() => None,
            Action::Put | Action::Delete => {
                let more = held_bytes(&change.key, &change.meta, change.body.len());
                (self.held_bytes + more > MAX_HELD_BYTES).then_some(Changed::Full)
            }
        }
    }
}

impl Ledger for Store {
    type Row = S3Row;
    type Write = Change;
    type Reply = Changed;
    type Question = Question;
    type Found = Found;

    fn decide(&mut self, change: Change, at_ns: u64) -> (Option<S3Row>, Changed) {
        if let Some(impossible) = self.impossible(&change) {
            return (None, impossible);
        }
        let found = self.current(&change.bucket, &change.key);
        let found = found.map(|version| version.etag.clone());
        let holds = change.condition.holds(found.as_deref());
        self.position += 1;
        let id = self.position;
        // Unlike a hash of the body alone, no two versions have the same ETag.
        let etag = || {
            let digest = Sha256::new().chain_update(id.to_be_bytes());
            let digest = digest.chain_update(&change.body).finalize();
            super::hex(&digest[..16])
        };
        let is_put = change.action == Action::Put;
        let etag = (is_put && holds).then(etag);
        let row = S3Row {
            seq: id,
            at_ns,
            time_s: change.time_s,
            action: change.action,
            bucket: change.bucket,
            key: change.key,
            outcome: match holds {
                true => RowOutcome::Accepted,
                false => RowOutcome::Rejected,
            },
            condition: change.condition,
            etag: etag.clone(),
            meta: change.meta,
            value: is_put.then(|| RowValue::from_bytes(&change.body)),
            found,
        };
        if holds {
            self.apply(&row);
            let etag = etag.unwrap_or_default();
            return (Some(row), Changed::Done { etag, id });
        }
        // So S3 answers `If-Match` about an object that is not there.
        let refused = match row.found {
            None => Changed::NoSuchKey,
            Some(_) => Changed::ConditionFailed,
        };
        (Some(row), refused)
    }

    fn look(&self, question: Question) -> Found {
        let bucket = match &question {
            Question::Buckets => return Found::Buckets(self.buckets.keys().cloned().collect()),
            Question::Bucket(bucket)
            | Question::Object { bucket, .. }
            | Question::List { bucket, .. } => self.buckets.get(bucket),
        };
        let Some(bucket) = bucket else {
            return Found::NoSuchBucket;
        };
        match question {
            Question::Buckets | Question::Bucket(_) => Found::Nothing,
            Question::Object { key, version, .. } => {
                let versions = bucket.get(&key).map_or(&[][..], Vec::as_slice);
                let found = match version {
                    None => versions.last(),
                    Some(id) => versions.iter().find(|version| version.id == id),
                };
                let found = found.filter(|version| version.body.is_some());
                found.map_or(Found::Nothing, |version| Found::Object(version.clone()))
            }
            Question::List {
                prefix,
                delimiter,
                after,
                most,
                ..
            } => Found::List(list(bucket, &prefix, delimiter.as_deref(), &after, most)),
        }
    }
}

fn list(
    bucket: &Bucket,
    prefix: &str,
    delimiter: Option<&str>,
    after: &str,
    most: usize,
) -> Listing {
    let mut listing = Listing::default();
    let mut last: Option<String> = None;
    let range = (Bound::Excluded(after.to_owned()), Bound::Unbounded);
    for (key, versions) in bucket.range::<String, _>(range) {
        let Some(current) = versions.last().filter(|version| version.body.is_some()) else {
            continue;
        };
        let Some(rest) = key.strip_prefix(prefix) else {
            continue;
        };
        let group = delimiter.and_then(|delimiter| {
            let end = rest.find(delimiter)? + delimiter.len();
            Some(format!("{prefix}{}", &rest[..end]))
        });
        // A group that the page before has ended with is not named again.
        let is_known = |group: &String| {
            listing.prefixes.last() == Some(group) || after.starts_with(group.as_str())
        };
        if group.as_ref().is_some_and(is_known) {
            last = Some(key.clone());
            continue;
        }
        if listing.objects.len() + listing.prefixes.len() >= most {
            listing.last = last;
            return listing;
        }
        match group {
            Some(group) => listing.prefixes.push(group),
            None => listing.objects.push((key.clone(), current.clone())),
        }
        last = Some(key.clone());
    }
    listing
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(action: Action, key: &str) -> Change {
        let bucket = Change::bucket(action, "bucket");
        let key = key.to_owned();
        Change { key, ..bucket }
    }

    #[test]
    fn a_full_store_takes_no_more_and_can_be_emptied() {
        let mut store = Store::default();
        let decide = |store: &mut Store, action, key| {
            let (row, changed) = store.decide(change(action, key), 0);
            assert_eq!(row.is_some(), matches!(changed, Changed::Done { .. }));
            row.is_some()
        };
        assert!(decide(&mut store, Action::MakeBucket, ""));
        assert!(decide(&mut store, Action::Put, "there"));
        store.held_bytes += MAX_HELD_BYTES;
        assert!(!decide(&mut store, Action::Put, "more"));
        assert!(!decide(&mut store, Action::Delete, "nothing"));
        assert!(decide(&mut store, Action::Delete, "there"));
        assert!(!decide(&mut store, Action::Delete, "there"));
        assert!(decide(&mut store, Action::RemoveBucket, ""));
        assert_eq!(store.held_bytes, MAX_HELD_BYTES, "all of it is given back");
    }
}
