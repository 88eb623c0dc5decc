//! The rows of the S3 role's log: every request to change something, and what became of it.

use super::super::row_line::Row;
use crate::model::{RowOutcome, RowValue};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct S3Row {
    /// The position: 1, 2, 3 … without a gap. It is the id of the version that the row makes.
    pub seq: u64,
    /// When it was decided, by the raw monotonic clock.
    pub at_ns: u64,
    /// The same by the clock of the system, in seconds since 1970.
    pub time_s: u64,
    pub action: Action,
    pub bucket: String,
    /// Empty if the action is about the bucket itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
    pub outcome: RowOutcome,
    #[serde(default, skip_serializing_if = "Condition::is_none")]
    pub condition: Condition,
    /// The ETag that the object had when it was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// The ETag of the version that was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub meta: BTreeMap<String, String>,
    /// The body of a put, also of one that was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<RowValue>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Put,
    Delete,
    MakeBucket,
    RemoveBucket,
}

/// What has to be true of the object when the change is decided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    #[default]
    None,
    /// `If-None-Match: *`
    Absent,
    /// `If-Match: *`
    Present,
    /// `If-Match` with ETags, without their quotes
    Matches(Vec<String>),
}

impl Condition {
    pub fn is_none(&self) -> bool {
        *self == Condition::None
    }

    pub fn holds(&self, found: Option<&str>) -> bool {
        match self {
            Condition::None => true,
            Condition::Absent => found.is_none(),
            Condition::Present => found.is_some(),
            Condition::Matches(etags) => {
                found.is_some_and(|found| etags.iter().any(|etag| etag == found))
            }
        }
    }
}

impl Row for S3Row {
    fn seq(&self) -> u64 {
        self.seq
    }

    fn outcome(&self) -> RowOutcome {
        self.outcome
    }

    fn problem(&self) -> Option<&'static str> {
        let is_accepted = self.action == Action::Put && self.outcome == RowOutcome::Accepted;
        let is_damaged = is_accepted && (self.value.is_none() || self.etag.is_none());
        is_damaged.then_some("an accepted put has no value or no ETag")
    }
}
