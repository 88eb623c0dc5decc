use super::{CaseVerdict, FaultRow, Fence, Gap, Judgement, LoadRecord, Name, Outcome, RowValue};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What a run came to: all that a report needs to know.
pub struct RunRecord {
    pub scenario: Name,
    pub scenario_hash: String,
    /// Unknown of a run that left no result.
    pub seed: Option<u64>,
    /// What was laid over the scenario's file, as it was given.
    pub settings: Vec<String>,
    /// A defect that was switched on in a test build, by name.
    pub mutant: Option<String>,
    pub cases: Vec<CaseResult>,
    /// Cases that were to run and have no result: not yet, or not any more.
    pub unfinished: Vec<Name>,
    /// Versions, kernel, image ids.
    pub environment: BTreeMap<String, String>,
    /// Empty where the run never began.
    pub folder: PathBuf,
}

pub struct CaseResult {
    pub name: Name,
    pub fence: Fence,
    /// The scenario says what happens, and not only for how long: then counts and
    /// faults are the same in every good run.
    pub determined: bool,
    pub judgement: Judgement,
    pub verdict: CaseVerdict,
    pub faults: Vec<FaultRow>,
    pub notes: CaseNotes,
    /// The first event: times are told from here.
    pub started_ns: u64,
}

/// What the harness itself has to say about a case, beside the evidence.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CaseNotes {
    pub workers: Vec<String>,
    /// Why the record is incomplete, where it is.
    pub gaps: Vec<Gap>,
    /// It cannot be played here: its timeline never began, so there is nothing to count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub never_played: bool,
    /// What the resource held in the end, key by key.
    pub values: BTreeMap<String, RowValue>,
    /// The resource's node.
    #[serde(default)]
    pub resource: Option<String>,
    /// `resource_stale_token_rejections_total` at the end; it starts at 0, also
    /// when the resource is started again.
    pub stale_rejections_metric: Option<u64>,
    /// Nothing was under way to the resource any more when its log was read, so
    /// what is not in it was not applied.
    #[serde(default)]
    pub settled: bool,
    /// When the timeline was over or given up, by the clock of all rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ns: Option<u64>,
    /// How many rows the resource's log had when it was collected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_rows: Option<u64>,
    /// The exact version of every lock server, as it said itself.
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
    pub measurements: BTreeMap<String, u64>,
    /// What a case of `kind: load` measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadRecord>,
}

impl CaseNotes {
    /// Locks that only live and die are never written with.
    pub fn is_without_writes(&self) -> bool {
        self.load
            .as_ref()
            .is_some_and(|load| load.keyspace.is_some())
    }
}

impl RunRecord {
    /// Whether there is a folder with what it left behind.
    pub fn began(&self) -> bool {
        !self.folder.as_os_str().is_empty()
    }

    /// The worst of all cases: false beats unknown beats true. What did not
    /// finish is unknown.
    pub fn verdict(&self) -> Outcome {
        let unfinished = self.unfinished.iter().map(|_| Outcome::Inconclusive);
        let finished = self.cases.iter().map(|case| case.verdict.outcome);
        let worst = finished.chain(unfinished).min();
        worst.unwrap_or(Outcome::Inconclusive)
    }
}

impl CaseResult {
    /// Milliseconds since the first event, with fractions.
    pub fn millis_since_start(&self, at_ns: u64) -> f64 {
        let ns = at_ns.saturating_sub(self.started_ns);
        (ns / 1_000) as f64 / 1_000.0
    }
}
