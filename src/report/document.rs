//! `result.json`: these structs are its writer, its reader and its schema.
//!
//! The stable part is the same in every good run, so that a plain `diff` of two results shows
//! only the rest. A reader ignores what a later program adds: a value that may get new names is
//! text here, and only the schema has the names of today.

mod read;
mod schema;

use super::comparison::ServiceFigures;
use super::*;
pub use read::{NotAResult, read};
pub use schema::schema;
use schema::{KeptWord, counts, load};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::{BTreeMap, HashMap};

pub const SCHEMA_VERSION: u32 = 1;

/// Fields in which names are data: a name that only the record has is not a field of a later
/// program, but data that does not exist any more.
pub const BY_NAME: [&str; 5] = ["cases", "violations", "excused", "promises", "last_writer"];

/// Fields that earlier programs did not write: a record without them says nothing about them.
pub const ADDED: [&str; 4] = ["lock", "promises", "excused", "contended"];

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "A result of fencepost")]
#[schemars(extend("$id" = format!("urn:fencepost:result:{SCHEMA_VERSION}")))]
pub struct ResultDocument {
    #[schemars(extend("const" = SCHEMA_VERSION))]
    pub schema_version: u32,
    pub stable: StablePart,
    /// By case.
    pub evidence: BTreeMap<String, EvidencePart>,
    #[schemars(with = "BTreeMap<String, MeasuredPart>")]
    pub measurements: BTreeMap<String, Value>,
    /// Of a scenario that runs its cases on several lock services: one for each of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ServiceFigures>,
    /// Versions, kernel, image ids.
    #[schemars(extend("required" = ["fencepost"]))]
    pub environment: BTreeMap<String, String>,
}

/// The same in every good run, to the letter.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StablePart {
    pub scenario: ScenarioText,
    /// Unknown only of a run that left no result.
    #[serde(deserialize_with = "known")]
    #[schemars(with = "u64")]
    pub seed: Option<u64>,
    pub verdict: Outcome,
    #[schemars(with = "BTreeMap<String, StableCase>")]
    pub cases: BTreeMap<Name, StableCase>,
    /// Cases that were to run and have no result.
    #[schemars(with = "Vec<String>")]
    pub unfinished: Vec<Name>,
    /// What was laid over the scenario's file.
    pub settings: Vec<String>,
    /// A defect that was switched on.
    pub mutant: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioText {
    #[schemars(with = "String")]
    pub name: Name,
    pub hash: String,
}

/// How much happened is there only where it is the same in every good run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StableCase {
    #[schemars(with = "Fence")]
    pub fence: String,
    pub verdict: Outcome,
    /// Absent in results of earlier programs, and of a case that uses no lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock: Option<LockOutcome>,
    pub findings: Vec<StableFinding>,
    pub doubts: Vec<String>,
    /// By kind; one that did not come is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub violations: Option<BTreeMap<String, u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excused: Option<BTreeMap<String, u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<BTreeMap<String, KeptWord>>")]
    pub promises: Option<BTreeMap<String, String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "counts")]
    pub counts: Option<BTreeMap<String, u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Vec<StableStory>>,
    /// Of the keys that a story is about: among workers that only take turns, anybody may
    /// be the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_writer: Option<BTreeMap<String, String>>,
    /// Each fault once, with how it came out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub faults: Option<Vec<StableFault>>,
}

/// One expectation beside what was found.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StableFinding {
    pub what: String,
    pub expected: String,
    pub held: bool,
    /// Absent where it differs from run to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<u64>,
    pub outcome: Outcome,
}

/// A story in symbols.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StableStory {
    pub key: String,
    #[schemars(with = "Vec<ViolationKind>")]
    pub violations: Vec<String>,
    pub steps: Vec<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StableFault {
    #[schemars(with = "FaultKind")]
    pub fault: String,
    pub target: String,
    #[schemars(with = "FaultStage")]
    pub came_to: String,
}

/// Of one run: real tokens, times and owners.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EvidencePart {
    /// What was found where it differs from run to run.
    #[serde(default)]
    pub findings: BTreeMap<String, String>,
    #[schemars(schema_with = "counts")]
    pub counts: BTreeMap<String, u64>,
    #[schemars(with = "Vec<Violation>")]
    pub violations: Vec<Value>,
    #[serde(default)]
    #[schemars(with = "Vec<Violation>")]
    pub excused: Vec<Value>,
    #[serde(default)]
    pub promises: BTreeMap<String, PromiseEvidence>,
    /// Whether a bystander saw at the lock servers who held what.
    #[serde(default)]
    pub lock_servers_seen: bool,
    /// What workers said that their lock does not offer.
    #[serde(default)]
    pub lacks: Vec<String>,
    #[schemars(with = "Vec<Overlap>")]
    pub overlaps: Value,
    pub explanation: Vec<EvidenceStory>,
    /// What the resource held in the end, key by key.
    #[serde(default)]
    pub values: BTreeMap<String, Value>,
    pub resource_stale_token_rejections_total: Option<u64>,
    #[schemars(with = "Vec<FaultRow>")]
    pub faults: Value,
    /// The first event: `at_ms` counts from here.
    pub started_ns: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PromiseEvidence {
    #[schemars(with = "KeptWord")]
    pub outcome: String,
    /// Why it was not checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EvidenceStory {
    /// The log position that it ends at; 0 where it is not about a write.
    pub row: u64,
    #[serde(default)]
    pub title: String,
    pub steps: Vec<EvidenceStep>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EvidenceStep {
    pub at_ms: f64,
    pub what: String,
}

/// Milliseconds by phase; and what a load measured.
#[derive(Serialize, JsonSchema)]
struct MeasuredPart {
    #[serde(flatten)]
    phases: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "load")]
    load: Option<LoadRecord>,
}

impl ResultDocument {
    pub fn of(run: &RunRecord) -> ResultDocument {
        ResultDocument {
            schema_version: SCHEMA_VERSION,
            stable: StablePart::of(run),
            evidence: by_case(run, EvidencePart::of),
            measurements: by_case(run, |case| {
                let (phases, load) = (case.notes.measurements.clone(), case.notes.load.clone());
                json!(MeasuredPart { phases, load })
            }),
            services: comparison::of(run),
            environment: environment(run),
        }
    }
}

fn words(promises: &BTreeMap<String, PromiseEvidence>) -> BTreeMap<String, String> {
    let words = promises.iter();
    let words = words.map(|(promise, kept)| (promise.clone(), kept.outcome.clone()));
    words.collect()
}

fn by_case<K: Ord + From<Name>, T>(
    run: &RunRecord,
    part: impl Fn(&CaseResult) -> T,
) -> BTreeMap<K, T> {
    let cases = run.cases.iter();
    cases
        .map(|case| (case.name.clone().into(), part(case)))
        .collect()
}

/// Converts a value to its form in the document.
fn written<T: DeserializeOwned + Default>(value: &impl Serialize) -> T {
    serde_json::from_value(json!(value)).unwrap_or_default()
}

impl StablePart {
    pub fn of(run: &RunRecord) -> StablePart {
        let (name, hash) = (run.scenario.clone(), run.scenario_hash.clone());
        StablePart {
            scenario: ScenarioText { name, hash },
            seed: run.seed,
            verdict: run.verdict(),
            cases: by_case(run, StableCase::of),
            unfinished: run.unfinished.clone(),
            settings: run.settings.clone(),
            mutant: run.mutant.clone(),
        }
    }
}

impl StableCase {
    pub fn of(case: &CaseResult) -> StableCase {
        let judgement = &case.judgement;
        let mut findings: Vec<StableFinding> = written(&case.verdict.findings);
        if !case.determined {
            findings.iter_mut().for_each(|finding| finding.found = None);
        }
        let determined = case.determined.then_some(judgement);
        StableCase {
            fence: case.fence.to_string(),
            verdict: case.verdict.outcome,
            lock: lock::outcome(case),
            findings,
            doubts: written(&case.verdict.doubts),
            violations: determined.map(|all| written(&all.violations_by_kind())),
            excused: determined.map(|all| written(&all.excused_by_kind())),
            promises: determined.map(|all| words(&written(&all.promises))),
            counts: determined.map(stable_counts),
            explanation: determined.map(|all| all.stories.iter().map(StableStory::of).collect()),
            last_writer: determined.map(last_writers),
            faults: determined.map(|_| faults(case)),
        }
    }
}

/// Returns the counts without two: the number of possible overlaps depends on how soon each was
/// seen, and who finds a key held depends on who is faster.
fn stable_counts(judgement: &Judgement) -> BTreeMap<String, u64> {
    let mut counts: BTreeMap<String, u64> = written(&judgement.counts);
    counts.retain(|name, _| !["possible_overlaps", "contended"].contains(&name.as_str()));
    counts
}

impl StableStory {
    fn of(story: &Story) -> StableStory {
        StableStory {
            key: story.key.clone(),
            violations: written(&story.kinds),
            steps: story
                .steps
                .iter()
                .map(|step| step.symbolic.clone())
                .collect(),
        }
    }
}

fn last_writers(judgement: &Judgement) -> BTreeMap<String, String> {
    let told = |key: &String| judgement.stories.iter().any(|story| story.key == *key);
    let told = judgement.last_writers.iter().filter(|(key, _)| told(key));
    told.map(|(key, (worker, _))| (key.clone(), worker.clone()))
        .collect()
}

fn faults(case: &CaseResult) -> Vec<StableFault> {
    let last: HashMap<u32, &FaultRow> = case.faults.iter().map(|row| (row.id, row)).collect();
    let requested = case
        .faults
        .iter()
        .filter(|row| row.stage == FaultStage::Requested);
    let faults = requested.map(|request| StableFault {
        fault: request.fault.to_string(),
        target: request.called().to_owned(),
        came_to: written(&last.get(&request.id).map(|row| row.stage)),
    });
    faults.collect()
}

impl EvidencePart {
    fn of(case: &CaseResult) -> EvidencePart {
        let judgement = &case.judgement;
        let timed = case.verdict.findings.iter();
        let timed = timed.filter(|one| one.found.differs_from_run_to_run());
        let step = |step: &StoryStep| EvidenceStep {
            at_ms: case.millis_since_start(step.at_ns),
            what: step.concrete.clone(),
        };
        let stories = judgement.stories.iter().map(|story| EvidenceStory {
            row: story.row,
            title: story.title.clone(),
            steps: story.steps.iter().map(step).collect(),
        });
        EvidencePart {
            findings: timed
                .map(|one| (one.what.clone(), one.found.to_string()))
                .collect(),
            counts: written(&judgement.counts),
            violations: written(&judgement.violations),
            excused: written(&judgement.excused),
            promises: written(&judgement.promises),
            lock_servers_seen: judgement.lock_servers_seen,
            lacks: written(&judgement.lacks),
            overlaps: json!(judgement.overlaps),
            explanation: stories.collect(),
            values: written(&case.notes.values),
            resource_stale_token_rejections_total: case.notes.stale_rejections_metric,
            faults: json!(case.faults),
            started_ns: case.started_ns,
        }
    }
}

/// Returns the counts that a page shows of a case, by their names in the document.
pub fn numbers(case: &CaseResult) -> BTreeMap<String, u64> {
    let mut all: BTreeMap<String, u64> = written(&case.judgement.counts);
    let fields: BTreeMap<String, Value> = written(&StableCase::of(case));
    all.extend(
        fields
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.as_u64()?))),
    );
    all
}

/// Returns the environment. A recorded run keeps the version that recorded it.
pub fn environment(run: &RunRecord) -> BTreeMap<String, String> {
    let mut all = run.environment.clone();
    let version = || env!("CARGO_PKG_VERSION").to_owned();
    all.entry("fencepost".to_owned()).or_insert_with(version);
    let versions = run.cases.iter().flat_map(|case| &case.notes.versions);
    all.extend(versions.map(|(node, version)| (format!("version {node}"), version.clone())));
    all
}

fn known<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    u64::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests;
