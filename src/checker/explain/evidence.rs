use super::super::holds::Hold;
use super::super::names::Names;
use super::super::positions::Positions;
use super::scene::Who;
use crate::model::{CaseRecord, FencingToken, LogRow};

/// Everything a story may quote.
pub(super) struct Evidence<'a> {
    pub record: &'a CaseRecord,
    pub holds: &'a [Hold<'a>],
    pub positions: &'a Positions<'a>,
    pub names: &'a Names<'a>,
}

impl<'a> Evidence<'a> {
    pub fn who(&self, owner: Option<&'a str>) -> Who<'a> {
        Who {
            worker: self.names.worker(owner),
            owner,
        }
    }

    /// The hold that a row was written under, by its owner or, without one, by its token.
    pub fn hold_of(&self, row: &LogRow) -> Option<&'a Hold<'a>> {
        match (&row.owner, row.token) {
            (Some(owner), _) => self.holds.iter().find(|hold| {
                hold.key == row.key && hold.grant.is_some_and(|grant| grant.owner == owner)
            }),
            (None, Some(token)) => self.hold_with(&row.key, token),
            (None, None) => None,
        }
    }

    pub fn hold_with(&self, key: &str, token: FencingToken) -> Option<&'a Hold<'a>> {
        self.holds
            .iter()
            .find(|hold| hold.key == key && hold.grant.is_some_and(|grant| grant.token == token))
    }
}
