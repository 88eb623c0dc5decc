use super::{ClockName, FaultKind};
use serde::{Deserialize, Serialize};

/// One row of `faults.jsonl`. A fault counts only when a row of it says
/// `observed`; asked for is not bitten.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
    /// On the request of a skew or drift: the clock that is moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockName>,
    /// On the request of a skew: how far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_ms: Option<i64>,
    /// On the request of a drift: how much faster it runs, in parts per million.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ppm: Option<i64>,
}

impl FaultRow {
    /// With nothing but what every row says.
    pub fn new(at_ns: u64, id: u32, fault: FaultKind, target: &str, stage: FaultStage) -> FaultRow {
        FaultRow {
            at_ns,
            id,
            fault,
            target: target.to_owned(),
            alias: None,
            stage,
            detail: String::new(),
            longer_than_ms: None,
            for_ms: None,
            clock: None,
            by_ms: None,
            ppm: None,
        }
    }

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

    /// As records write it.
    pub fn name(self) -> &'static str {
        match self {
            FaultStage::Requested => "requested",
            FaultStage::Observed => "observed",
            FaultStage::Unproven => "unproven",
            FaultStage::Ending => "ending",
            FaultStage::Ended => "ended",
            FaultStage::Healed => "healed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_of_earlier_program_has_no_parameters_as_data() {
        let line = r#"{"at_ns":1,"id":2,"fault":"skew","target":"redis","stage":"requested","detail":"realtime by +5 ms"}"#;
        let row: FaultRow = serde_json::from_str(line).unwrap();
        assert_eq!((row.clock, row.by_ms, row.ppm), (None, None, None));
        assert_eq!(serde_json::to_string(&row).unwrap(), line);
    }
}
