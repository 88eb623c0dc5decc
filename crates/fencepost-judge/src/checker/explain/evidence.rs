//! Lookups for the evidence that a story quotes.

use super::*;

impl<'e, 'a> Case<'e, 'a> {
    pub(super) fn who(&self, owner: Option<&'a str>) -> Who<'a> {
        Who {
            worker: self.names.worker(owner),
            owner,
        }
    }

    pub(super) fn writer(&self, row: &Row) -> Who<'a> {
        Who {
            worker: self.names.writer(row),
            owner: self.sound.record.log.owner_of(row),
        }
    }

    pub fn key_of(&self, row: &Row) -> &'a str {
        self.sound.record.log.key_of(row)
    }

    /// Returns the hold that a row was written under, by its owner or, without one, by
    /// its token.
    pub fn hold_of(&self, row: &Row) -> Option<&'e Hold<'a>> {
        let key = self.key_of(row);
        match (self.sound.record.log.owner_of(row), row.token) {
            (Some(owner), _) => self.hold_by(key, owner),
            (None, Some(token)) => self.hold_with(key, token),
            (None, None) => None,
        }
    }

    pub fn hold_by(&self, key: &str, owner: &str) -> Option<&'e Hold<'a>> {
        let mut holds = self.holds.all.iter();
        holds.find(|hold| hold.key == key && hold.owner() == Some(owner))
    }

    pub fn hold_with(&self, key: &str, token: FencingToken) -> Option<&'e Hold<'a>> {
        let mut holds = self.holds.all.iter();
        holds.find(|hold| hold.key == key && hold.token() == Some(token))
    }

    pub fn end_ns(&self) -> u64 {
        let history = self.sound.history.iter().map(|event| event.at_ns);
        let log = self.sound.log.iter().map(|row| row.at_ns);
        history.chain(log).max().unwrap_or(0)
    }
}
