use super::FencingToken;
use serde::{Deserialize, Serialize};

/// One row of `locks.jsonl`: a lock that a server itself held, as a bystander on that
/// node saw it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LockEvent {
    pub at_ns: u64,
    pub node: String,
    pub key: String,
    #[serde(rename = "event")]
    pub kind: LockEventKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<FencingToken>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LockEventKind {
    Granted,
    Renewed,
    Released,
    Expired,
    /// Somebody took a place in a line behind others.
    Queued,
    /// Somebody left a line before their turn.
    Left,
}
