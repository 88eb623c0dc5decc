use serde::{Deserialize, Serialize};
use std::fmt;

/// One row of `faults.jsonl`. A fault counts only when a row of it says
/// `observed`; asked for is not bitten.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FaultRow {
    pub at_ns: u64,
    /// Rows with one id belong to one action.
    pub id: u32,
    pub fault: FaultKind,
    pub target: String,
    pub stage: FaultStage,
    /// What was seen, or why nothing was.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// On the request of a pause: it proves nothing unless it lasted longer than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longer_than_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// SIGSTOP: every thread of the target stands still.
    Pause,
    /// SIGCONT.
    Resume,
}

impl FaultKind {
    pub fn name(self) -> &'static str {
        match self {
            FaultKind::Pause => "pause",
            FaultKind::Resume => "resume",
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultStage {
    Requested,
    /// The target was seen in the state that the fault means.
    Observed,
    /// It was not, within the deadline.
    Unproven,
    /// Healing at the end undid it, because the timeline had not.
    Healed,
}
