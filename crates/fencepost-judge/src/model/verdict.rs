use super::{Ability, Doubt, FencingToken, Kept, LockOutcome, Measure, Promise, ViolationKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// One broken rule, with the rows that prove it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Violation {
    pub kind: ViolationKind,
    pub key: String,
    /// The log position of the write that broke the rule; 0 where no write did.
    pub row: u64,
    /// The earlier position that it broke it against, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<u64>,
    /// When it was broken, as far as the record tells.
    #[serde(default)]
    pub at_ns: u64,
    /// Who broke it, and against whom.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<String>,
    /// With the real tokens and owners.
    pub detail: String,
    /// The proven fault that explains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excuse: Option<Excuse>,
}

impl Violation {
    /// Makes a violation with only the fields that every violation has.
    pub fn new(kind: ViolationKind, key: &str, row: u64, at_ns: u64, detail: String) -> Violation {
        Violation {
            kind,
            key: key.to_owned(),
            row,
            against: None,
            at_ns,
            workers: Vec::new(),
            detail,
            excuse: None,
        }
    }
}

/// A proven fault, or a break that is told of by itself, which takes a service's
/// promise away for a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Excuse {
    /// The id of the fault; none where another's release is the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<u32>,
    /// `restart-empty of redis`.
    pub text: String,
}

/// A time in which a worker believed that it held a key.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    pub worker: String,
    pub key: String,
    pub token: Option<FencingToken>,
    pub owner: String,
    pub from_ns: u64,
    /// Until here it certainly believed so.
    pub to_ns: u64,
    /// False if the history stops in the middle of it.
    pub ended: bool,
}

/// Two workers that held one key at the same time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Overlap {
    pub key: String,
    pub first: String,
    pub second: String,
    pub from_ns: u64,
    pub to_ns: u64,
    /// False where only an operation with an unknown outcome makes it possible.
    pub definite: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    pub accepted_writes: u64,
    pub accepted_writers: u64,
    pub rejections: u64,
    pub stale_rejections: u64,
    pub rightful_rejections: u64,
    pub duplicates: u64,
    pub definite_overlaps: u64,
    pub possible_overlaps: u64,
    pub foreign_releases: u64,
    pub lost_leases: u64,
    pub failed_acquires: u64,
    /// Absent in results of earlier programs.
    #[serde(default)]
    pub contended: u64,
    /// Breaks that a proven fault excuses.
    #[serde(default)]
    pub excused: u64,
}

/// One step of an explanation. It is told twice: with real tokens and times for people,
/// and in symbols for the stable part of the result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoryStep {
    pub at_ns: u64,
    /// Says which of the records has it, at that time.
    pub kind: StepKind,
    /// `t1 < t2`, worker names, no times: the same in every good run.
    pub symbolic: String,
    /// The same with the real token.
    pub concrete: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// A hold begins.
    Grant,
    Fault,
    /// A lock server ends a hold.
    LetGo,
    /// The resource decides on a write.
    Write,
    /// An event that only a worker was told of, or that no record shows.
    Other,
}

/// An explanation of at most eight steps that a person can read aloud.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Story {
    pub key: String,
    /// The log position that the story ends at; 0 if it is not about a write.
    pub row: u64,
    /// The rules that were broken; empty if none was.
    pub kinds: Vec<ViolationKind>,
    /// The subject of the story, in a few words.
    pub title: String,
    pub steps: Vec<StoryStep>,
}

/// The judge's findings, without the expectations.
#[derive(Clone, Debug, Default)]
pub struct Judgement {
    pub violations: Vec<Violation>,
    /// Breaks that would be violations, had not a proven fault suspended the promise.
    pub excused: Vec<Violation>,
    /// Some of the overlaps; `counts` has their number.
    pub overlaps: Vec<Overlap>,
    pub counts: Counts,
    /// The durations that could be measured.
    pub measures: BTreeMap<Measure, Duration>,
    pub stories: Vec<Story>,
    /// The reasons why the record does not support a clear verdict: an unproven fault, a
    /// gap.
    pub doubts: Vec<Doubt>,
    /// The state of each promise of the lock.
    pub promises: BTreeMap<Promise, Kept>,
    /// Whether a bystander saw at the lock servers who held what.
    pub lock_servers_seen: bool,
    /// The abilities that the lock lacks, as workers report.
    pub lacks: Vec<Ability>,
    /// For each key: the worker that wrote the last value, and its token.
    pub last_writers: BTreeMap<String, (String, Option<FencingToken>)>,
}

impl Judgement {
    /// Returns whether the lock kept its promises, whatever the scenario expects.
    pub fn lock_outcome(&self) -> LockOutcome {
        let has = |state: Kept| self.promises.values().any(|kept| *kept == state);
        if has(Kept::Broken) {
            LockOutcome::Broken
        } else if has(Kept::Excused) {
            LockOutcome::Excused
        } else if self.promises.get(&Promise::Exclusion) == Some(&Kept::Kept) {
            LockOutcome::Kept
        } else {
            LockOutcome::NotTested
        }
    }

    pub fn violations_by_kind(&self) -> BTreeMap<ViolationKind, u64> {
        by_kind(&self.violations)
    }

    pub fn excused_by_kind(&self) -> BTreeMap<ViolationKind, u64> {
        by_kind(&self.excused)
    }
}

fn by_kind(violations: &[Violation]) -> BTreeMap<ViolationKind, u64> {
    let mut by_kind = BTreeMap::new();
    for violation in violations {
        *by_kind.entry(violation.kind).or_insert(0) += 1;
    }
    by_kind
}

/// Three values, worst first: false beats unknown beats true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(strum::Display)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    #[strum(to_string = "not as expected")]
    NotAsExpected,
    #[strum(to_string = "inconclusive")]
    Inconclusive,
    #[strum(to_string = "as expected")]
    AsExpected,
}

/// One expectation with the finding for it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    pub what: String,
    pub expected: String,
    /// Whether the finding matches the expectation, whatever the doubts.
    pub held: bool,
    #[serde(skip_serializing_if = "Found::differs_from_run_to_run")]
    pub found: Found,
    pub outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Found {
    /// The same in every good run.
    Count(u64),
    /// Anything measured by a clock, in words: different in every run.
    Timed(String),
}

impl Found {
    pub fn differs_from_run_to_run(&self) -> bool {
        matches!(self, Found::Timed(_))
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Found::Count(count) => write!(f, "{count}"),
            Found::Timed(words) => f.write_str(words),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CaseVerdict {
    pub outcome: Outcome,
    pub findings: Vec<Finding>,
    /// The reasons why the case is inconclusive, if it is.
    pub doubts: Vec<Doubt>,
}
