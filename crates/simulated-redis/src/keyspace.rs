//! The keys of one database, and when they end.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub(crate) type Bytes = Vec<u8>;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Text(Bytes),
    Hash(BTreeMap<Bytes, Bytes>),
    List(VecDeque<Bytes>),
}

impl Value {
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) => "string",
            Value::Hash(_) => "hash",
            Value::List(_) => "list",
        }
    }

    /// A hash or a list without anything in it is not kept.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Value::Text(_) => false,
            Value::Hash(fields) => fields.is_empty(),
            Value::List(items) => items.is_empty(),
        }
    }
}

#[derive(Clone, Default)]
pub(crate) struct Keyspace {
    entries: BTreeMap<Bytes, Entry>,
    /// The keys that end, by when.
    ends: BTreeSet<(i64, Bytes)>,
}

#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) value: Value,
    pub(crate) ends_ms: Option<i64>,
}

impl Keyspace {
    pub(crate) fn get(&self, key: &[u8]) -> Option<&Value> {
        self.entries.get(key).map(|entry| &entry.value)
    }

    pub(crate) fn entry(&self, key: &[u8]) -> Option<&Entry> {
        self.entries.get(key)
    }

    pub(crate) fn get_mut(&mut self, key: &[u8]) -> Option<&mut Value> {
        self.entries.get_mut(key).map(|entry| &mut entry.value)
    }

    pub(crate) fn ends_ms(&self, key: &[u8]) -> Option<i64> {
        self.entries.get(key).and_then(|entry| entry.ends_ms)
    }

    /// Sets a value, which has no end then.
    pub(crate) fn set(&mut self, key: &[u8], value: Value) {
        self.remove(key);
        let ends_ms = None;
        self.entries.insert(key.to_vec(), Entry { value, ends_ms });
    }

    pub(crate) fn set_end(&mut self, key: &[u8], ends_ms: Option<i64>) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        if let Some(before) = std::mem::replace(&mut entry.ends_ms, ends_ms) {
            self.ends.remove(&(before, key.to_vec()));
        }
        if let Some(ends_ms) = ends_ms {
            self.ends.insert((ends_ms, key.to_vec()));
        }
    }

    pub(crate) fn remove(&mut self, key: &[u8]) -> Option<Value> {
        let entry = self.entries.remove(key)?;
        if let Some(ends_ms) = entry.ends_ms {
            self.ends.remove(&(ends_ms, key.to_vec()));
        }
        Some(entry.value)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &Bytes> {
        self.entries.keys()
    }

    /// Returns the end that comes first, and its key.
    pub(crate) fn first_end(&self) -> Option<&(i64, Bytes)> {
        self.ends.first()
    }
}
