//! The rows of the S3's log as decisions about tokens.

use crate::model::{BodyHash, Fence, FencingToken, LogRow, RowOutcome, RowValue};
use crate::resource::s3::{Action, Condition, S3Row};
use crate::resource::state::{Ruling, State, WriteRequest};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The content of an object: the value, and whose it is. Two writes differ in it even if their
/// values are equal, so they have different ETags on every S3.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    pub token: Option<FencingToken>,
    pub seq: u64,
    pub owner: Option<String>,
    pub based_on: Option<u64>,
    pub value: RowValue,
}

impl Envelope {
    pub fn of(write: &WriteRequest) -> Envelope {
        Envelope {
            token: write.token,
            seq: write.token_seq,
            owner: write.owner.clone(),
            based_on: write.based_on,
            value: RowValue::from_bytes(&write.body),
        }
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("plain data into memory cannot fail")
    }

    /// Returns the write that made an object with this key.
    pub fn to_write(&self, key: &str) -> WriteRequest {
        WriteRequest {
            key: key.to_owned(),
            token: self.token,
            token_seq: self.seq,
            owner: self.owner.clone(),
            based_on: self.based_on,
            body: Bytes::copy_from_slice(self.value.as_bytes()),
        }
    }
}

/// No object has this ETag: a put with it leaves a refusal in the log, and nothing else.
pub const NEVER: &str = "refused";

/// What the fence would say, beside what the S3 did.
pub struct Judged {
    bucket: String,
    state: State,
    /// The writes with a row of a refusal and the token that it names, until the put comes that is
    /// only sent to leave one.
    refused: HashMap<Attempted, Option<FencingToken>>,
}

/// The key, the token, its seq and the owner of a write.
type Attempted = (String, Option<FencingToken>, u64, Option<String>);

impl Judged {
    pub fn new(bucket: &str) -> Judged {
        Judged {
            bucket: bucket.to_owned(),
            state: State::new(Fence::On),
            refused: HashMap::new(),
        }
    }

    /// Returns the decision that a row is. A put that was refused is one only if its token was not
    /// the highest: otherwise its writer saw that the object had changed, and tried again.
    pub fn row(&mut self, row: S3Row) -> Option<LogRow> {
        if row.action != Action::Put || row.bucket != self.bucket {
            return None;
        }
        let sent = row.value.as_ref()?;
        let envelope: Envelope = serde_json::from_slice(sent.as_bytes()).ok()?;
        let write = envelope.to_write(&row.key);
        let highest = self.state.highest(&write.key);
        let seen = highest.map(|highest| highest.pair.token);
        let ruled = Ruling::of(&write, highest).ok();
        let is_accepted = row.outcome == RowOutcome::Accepted;
        let outcome = match (is_accepted, &ruled) {
            (true, _) => RowOutcome::Accepted,
            (false, Some(Ruling::Repeat { .. })) => RowOutcome::Duplicate,
            (false, Some(Ruling::Refuse { .. })) => RowOutcome::Rejected,
            (false, Some(Ruling::Apply) | None) => return None,
        };
        if outcome == RowOutcome::Rejected && !self.is_new(&write, &row.condition, seen) {
            return None;
        }
        let judged = LogRow {
            seq: row.seq,
            at_ns: row.at_ns,
            key: write.key,
            outcome,
            token: write.token,
            token_seq: write.token_seq,
            seen,
            owner: write.owner,
            based_on: write.based_on,
            body: Some(BodyHash::of(&write.body)),
            value: is_accepted.then_some(envelope.value),
        };
        if is_accepted {
            self.state.replay(judged.clone());
        }
        Some(judged)
    }

    /// Returns whether a refusal is one of its own. Whoever loses a race and then finds a higher token
    /// sends a second put, because the first one may have lost against a lower one.
    fn is_new(
        &mut self,
        write: &WriteRequest,
        condition: &Condition,
        seen: Option<FencingToken>,
    ) -> bool {
        let key = write.key.clone();
        let of = (key, write.token, write.token_seq, write.owner.clone());
        match *condition == Condition::Matches(vec![NEVER.to_owned()]) {
            true => self.refused.remove(&of) != Some(seen),
            false => {
                self.refused.insert(of, seen);
                true
            }
        }
    }
}
