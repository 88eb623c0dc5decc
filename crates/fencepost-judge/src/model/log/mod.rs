//! The resource's log in memory: fast to read and small.

mod cursor;
mod line;
mod names;
mod read;
mod text;

#[cfg(test)]
mod tests;

pub use read::{BadRow, LogFile};

use super::{BodyHash, FencingToken, LogRow, RowOutcome, RowValue};
use names::NameTable;
use serde::Deserialize;
use text::Text;

/// The resource's log as a judge holds it: rows of one size, with a number in place of
/// each key and each owner, and values as their original JSON.
#[derive(Clone, Debug, Default)]
pub struct Log {
    pub rows: Vec<Row>,
    text: Text,
    keys: NameTable,
    owners: NameTable,
}

/// The number of a key: 0, 1, 2 … in the order of their first rows in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(pub u32);

/// One row, as in [`LogRow`]. Before its names have numbers, they are positions in the
/// text.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Row<K = Key, O = Owner> {
    pub seq: u64,
    pub at_ns: u64,
    pub key: K,
    pub outcome: RowOutcome,
    pub token: Option<FencingToken>,
    pub token_seq: u64,
    pub seen: Option<FencingToken>,
    pub owner: Option<O>,
    pub based_on: Option<u64>,
    pub body: Option<BodyHash>,
    /// Where the JSON of its value begins, or [`NO_VALUE`]: an `Option` would make every
    /// row eight bytes longer.
    value_at: usize,
}

const NO_VALUE: usize = usize::MAX;

impl Log {
    pub fn from_rows(rows: impl IntoIterator<Item = LogRow>) -> Log {
        let mut log = Log::default();
        for row in rows {
            log.push(row);
        }
        log
    }

    pub fn push(&mut self, row: LogRow) {
        let key = add_name(&mut self.keys, &mut self.text, &row.key);
        let owner = row
            .owner
            .map(|owner| add_name(&mut self.owners, &mut self.text, &owner));
        let value_at = row.value.map_or(NO_VALUE, |value| {
            let json = serde_json::to_vec(&value).expect("text and numbers are plain data");
            self.text.add(&json).start
        });
        self.rows.push(Row {
            seq: row.seq,
            at_ns: row.at_ns,
            key: Key(key),
            outcome: row.outcome,
            token: row.token,
            token_seq: row.token_seq,
            seen: row.seen,
            owner: owner.map(Owner),
            based_on: row.based_on,
            body: row.body,
            value_at,
        });
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn key_count(&self) -> usize {
        self.keys.len()
    }

    pub fn owner_count(&self) -> usize {
        self.owners.len()
    }

    pub fn key(&self, key: Key) -> &str {
        self.keys.name(&self.text, key.0)
    }

    pub fn owner(&self, owner: Owner) -> &str {
        self.owners.name(&self.text, owner.0)
    }

    pub fn key_named(&self, name: &str) -> Option<Key> {
        self.keys.find(&self.text, name).map(Key)
    }

    pub fn owner_named(&self, name: &str) -> Option<Owner> {
        self.owners.find(&self.text, name).map(Owner)
    }

    pub fn key_of(&self, row: &Row) -> &str {
        self.key(row.key)
    }

    pub fn owner_of(&self, row: &Row) -> Option<&str> {
        row.owner.map(|owner| self.owner(owner))
    }

    /// Decodes the value on every call, since few values are ever looked at.
    pub fn value_of(&self, row: &Row) -> Option<RowValue> {
        if row.value_at == NO_VALUE {
            return None;
        }
        let mut json = serde_json::Deserializer::from_slice(self.text.rest(row.value_at));
        let value = RowValue::deserialize(&mut json);
        Some(value.expect("a row is held only where its value is one"))
    }

    pub fn written(&self, row: &Row) -> LogRow {
        LogRow {
            seq: row.seq,
            at_ns: row.at_ns,
            key: self.key_of(row).to_owned(),
            outcome: row.outcome,
            token: row.token,
            token_seq: row.token_seq,
            seen: row.seen,
            owner: self.owner_of(row).map(str::to_owned),
            based_on: row.based_on,
            body: row.body,
            value: self.value_of(row),
        }
    }
}

fn add_name(names: &mut NameTable, text: &mut Text, name: &str) -> u32 {
    let known = names.len();
    let place = text.add(name.as_bytes());
    let number = names.number(text, place.clone());
    if names.len() == known {
        text.remove_from(place.start);
    }
    number
}
