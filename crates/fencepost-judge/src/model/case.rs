use super::{CasePlan, Event, FaultRow, Gap, LockEvent, Log, RowValue};
use std::collections::BTreeMap;

/// Everything that one case left behind, and that a judge may look at.
#[derive(Clone, Debug, Default)]
pub struct CaseRecord {
    /// The scenario's description of the case.
    pub plan: CasePlan,
    /// The workers that the scenario started, by name.
    pub workers: Vec<String>,
    pub history: Vec<Event>,
    pub log: Log,
    pub faults: Vec<FaultRow>,
    pub locks: Vec<LockEvent>,
    /// The lock servers that somebody watched.
    pub lock_servers: Vec<String>,
    /// The values that the resource held in the end, by key.
    pub values: BTreeMap<String, RowValue>,
    /// The resource's node, if it is known.
    pub resource: Option<String>,
    /// How many refusals the resource counted in its metric, since it was last started.
    pub refusals_counted: Option<u64>,
    /// How many rows the log had when it was collected.
    pub log_rows: Option<u64>,
    /// Whether the positions of the log grow with gaps: then only the number of its rows says
    /// whether it is whole.
    pub log_has_gaps: bool,
    /// When the timeline was over or given up; a lower bound if the record does not say
    /// it exactly.
    pub ended_ns: Option<u64>,
    /// Whether no write was under way to the resource any more when its log was read.
    pub settled: bool,
    /// Whether nobody was meant to write.
    pub without_writes: bool,
    /// The reasons why this record is known to be incomplete, in the harness's own words.
    pub gaps: Vec<Gap>,
}
