use super::{BodyHash, FencingToken};
use serde::{Deserialize, Serialize};

/// One row of the resource's log (`accepted.jsonl`), which has every write that it
/// decided on, in its own order. Safety is judged by this order and by no clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogRow {
    /// The log position: 1, 2, 3 … without a gap.
    pub seq: u64,
    /// When the resource decided, by the raw monotonic clock.
    pub at_ns: u64,
    pub key: String,
    pub outcome: RowOutcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<FencingToken>,
    /// `X-Fence-Seq`: the holder's own count of its writes under one token.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub token_seq: u64,
    /// The highest token that the resource knew for this key when it decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<FencingToken>,
    /// `X-Owner`: the id of the hold that writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// `X-Based-On`: the position that the read before this write returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub based_on: Option<u64>,
    /// The hash of the body that was sent, whatever the decision; absent in the logs of
    /// earlier programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<BodyHash>,
    /// The body that was accepted; absent if nothing was applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<RowValue>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowOutcome {
    #[default]
    Accepted,
    /// Answered with 409; nothing was applied.
    Rejected,
    /// The latest write again: answered like the first time, not applied again.
    Duplicate,
}

/// A body: as text if it is text, as numbers otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RowValue {
    Text(String),
    Bytes(Vec<u8>),
}

impl RowValue {
    pub fn from_bytes(bytes: &[u8]) -> RowValue {
        match std::str::from_utf8(bytes) {
            Ok(text) => RowValue::Text(text.to_owned()),
            Err(_) => RowValue::Bytes(bytes.to_owned()),
        }
    }

    pub fn as_bytes(&self) -> &[u8] {
        match self {
            RowValue::Text(text) => text.as_bytes(),
            RowValue::Bytes(bytes) => bytes,
        }
    }
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}
