use super::{CaseVerdict, FaultRow, Fence, Gap, Judgement, LoadRecord, Name, Outcome, RowValue};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The results of a run: everything that a report needs to know.
pub struct RunRecord {
    pub scenario: Name,
    pub scenario_hash: String,
    /// Unknown for a run that left no result.
    pub seed: Option<u64>,
    /// The overrides of the scenario's file, as they were given.
    pub settings: Vec<String>,
    /// The name of a defect that was switched on in a test build.
    pub mutant: Option<String>,
    pub cases: Vec<CaseResult>,
    /// Cases that were to run and have no result: not yet, or not any more.
    pub unfinished: Vec<Name>,
    /// Versions, kernel, image ids.
    pub environment: BTreeMap<String, String>,
    /// Empty if the run never began.
    pub folder: PathBuf,
}

pub struct CaseResult {
    pub name: Name,
    /// The service that it ran on, if the scenario runs its cases on several.
    pub service: Option<ServiceRun>,
    pub fence: Fence,
    /// Whether the scenario says what happens, and not only for how long: then counts and
    /// faults are the same in every good run.
    pub determined: bool,
    pub judgement: Judgement,
    pub verdict: CaseVerdict,
    pub faults: Vec<FaultRow>,
    pub notes: CaseNotes,
    /// The first event, from which times are counted.
    pub started_ns: u64,
}

/// One of the services on which a scenario runs all its cases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceRun {
    pub name: Name,
    /// Where its tokens come from, in words.
    pub tokens: String,
    /// The TTL of the case's lock.
    pub ttl_ms: u64,
}

/// The harness's own notes on a case, besides the evidence.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CaseNotes {
    pub workers: Vec<String>,
    /// The reasons why the record is incomplete, if it is.
    pub gaps: Vec<Gap>,
    /// Whether the case cannot be played here: its timeline never began, so there is
    /// nothing to count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub never_played: bool,
    /// The values that the resource held in the end, by key.
    pub values: BTreeMap<String, RowValue>,
    /// The resource's node.
    #[serde(default)]
    pub resource: Option<String>,
    /// `resource_stale_token_rejections_total` at the end; it starts at 0, also when the
    /// resource is started again.
    pub stale_rejections_metric: Option<u64>,
    /// Whether no write was under way to the resource any more when its log was read, so
    /// that a write which is not in it was not applied.
    #[serde(default)]
    pub settled: bool,
    /// When the timeline was over or given up, by the clock of all rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ns: Option<u64>,
    /// How many rows the resource's log had when it was collected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_rows: Option<u64>,
    /// Whether the positions of the log grow with gaps, as those of a database do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub log_has_gaps: bool,
    /// The exact version of every lock server, as the server itself reports it.
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
    pub measurements: BTreeMap<String, u64>,
    /// The measurements of a case of `kind: load`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadRecord>,
}

impl CaseNotes {
    /// Returns whether the case is without writes: locks of a keyspace are only made and
    /// expire.
    pub fn is_without_writes(&self) -> bool {
        self.load
            .as_ref()
            .is_some_and(|load| load.keyspace.is_some())
    }
}

impl RunRecord {
    /// Returns whether the run has a folder with its record.
    pub fn began(&self) -> bool {
        !self.folder.as_os_str().is_empty()
    }

    pub fn cases_as_expected(&self) -> usize {
        let outcomes = self.cases.iter().map(|case| case.verdict.outcome);
        outcomes
            .filter(|outcome| *outcome == Outcome::AsExpected)
            .count()
    }

    /// Returns the worst verdict of all cases: false beats unknown beats true. A case
    /// that did not finish is unknown.
    pub fn verdict(&self) -> Outcome {
        let unfinished = self.unfinished.iter().map(|_| Outcome::Inconclusive);
        let finished = self.cases.iter().map(|case| case.verdict.outcome);
        let worst = finished.chain(unfinished).min();
        worst.unwrap_or(Outcome::Inconclusive)
    }
}

impl CaseResult {
    /// Returns milliseconds since the first event, with fractions.
    pub fn millis_since_start(&self, at_ns: u64) -> f64 {
        let ns = at_ns.saturating_sub(self.started_ns);
        (ns / 1_000) as f64 / 1_000.0
    }
}
