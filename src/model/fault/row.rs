use super::FaultKind;
use serde::{Deserialize, Serialize};

/// One row of `faults.jsonl`. A fault counts only when a row of it says
/// `observed`; asked for is not bitten.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FaultRow {
    pub at_ns: u64,
    /// Rows with one id belong to one action.
    pub id: u32,
    pub fault: FaultKind,
    pub target: String,
    /// What the scenario calls the target, where that is not its name: `leader`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    pub stage: FaultStage,
    /// What was seen, or why nothing was.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// On the request of a pause: it proves nothing unless it lasted longer than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longer_than_ms: Option<u64>,
    /// On a request: how long it is to last, as written or as drawn by the seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_ms: Option<u64>,
}

impl FaultRow {
    /// The target by its name in the scenario, which is the same in every run.
    pub fn called(&self) -> &str {
        self.alias.as_deref().unwrap_or(&self.target)
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
    /// It is being undone from here on, and what it held back may go on before
    /// anybody has seen that. (A pause or freeze is undone by an action of its
    /// own, which is requested.)
    Ending,
    /// The timeline undid it, and the target was seen without it again.
    Ended,
    /// Healing at the end undid it, because the timeline had not.
    Healed,
}

impl FaultStage {
    pub const ALL: [FaultStage; 6] = [
        FaultStage::Requested,
        FaultStage::Observed,
        FaultStage::Unproven,
        FaultStage::Ending,
        FaultStage::Ended,
        FaultStage::Healed,
    ];
}
