use super::{Event, FaultRow, LockEvent, LogRow, RowValue};
use std::collections::BTreeMap;

/// Everything one case left behind: all that a judge may look at.
#[derive(Clone, Debug, Default)]
pub struct CaseRecord {
    /// The workers that the scenario started, by name.
    pub workers: Vec<String>,
    pub history: Vec<Event>,
    pub log: Vec<LogRow>,
    pub faults: Vec<FaultRow>,
    pub locks: Vec<LockEvent>,
    /// What the resource held in the end, key by key.
    pub values: BTreeMap<String, RowValue>,
    /// The resource's node, where it is known.
    pub resource: Option<String>,
    /// How many refusals the resource counted in its metric, since it was last started.
    pub refusals_counted: Option<u64>,
    /// Nothing was under way to the resource any more when its log was read.
    pub settled: bool,
    /// Nobody was meant to write.
    pub without_writes: bool,
    /// Why this record is known to be incomplete, in the harness's own words.
    pub gaps: Vec<String>,
}
