use super::{Ability, Doubt, FencingToken, Kept, LockOutcome, Measure, Promise, ViolationKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// One broken rule, with the rows that prove it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

/// A proven fault, or a break that is told of by itself, which takes a service's
/// promise away for a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// Until here it certainly did.
    pub to_ns: u64,
    /// False where the history stops in the middle of it.
    pub ended: bool,
}

/// Two workers that held one key at the same time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

/// One step of an explanation. It is told twice: with real tokens and times
/// to a person, and in symbols to the stable part of the result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoryStep {
    pub at_ns: u64,
    /// In which of the records it is to be found, at that time.
    pub kind: StepKind,
    /// `t1 < t2`, worker names, no times: the same in every good run.
    pub symbolic: String,
    /// The same with the real token.
    pub concrete: String,
}

/// What a step of a story is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// A hold begins.
    Grant,
    Fault,
    /// A lock server lets a lock go.
    LetGo,
    /// The resource decides on a write.
    Write,
    /// What only a worker was told, or what nothing shows.
    Other,
}

/// At most eight steps that a person can read aloud.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Story {
    pub key: String,
    /// The log position that the story ends at; 0 where it is not about a write.
    pub row: u64,
    /// The rules that were broken; empty where nothing was.
    pub kinds: Vec<ViolationKind>,
    /// What the story is about, in a few words.
    pub title: String,
    pub steps: Vec<StoryStep>,
}

/// What the judge found, before anybody asks what was expected.
#[derive(Clone, Debug, Default)]
pub struct Judgement {
    pub violations: Vec<Violation>,
    /// What would be a violation, had not a proven fault taken the promise away.
    pub excused: Vec<Violation>,
    /// Some of them; `counts` has how many there are.
    pub overlaps: Vec<Overlap>,
    pub counts: Counts,
    /// What could be measured.
    pub measures: BTreeMap<Measure, Duration>,
    pub stories: Vec<Story>,
    /// Why the record does not support a clean answer: an unproven fault, a gap.
    pub doubts: Vec<Doubt>,
    /// What became of each promise of the lock.
    pub promises: BTreeMap<Promise, Kept>,
    /// Whether a bystander saw at the lock servers who held what.
    pub lock_servers_seen: bool,
    /// What workers said that their lock does not offer.
    pub lacks: Vec<Ability>,
    /// Key by key: the worker whose write stands at the end, and its token.
    pub last_writers: BTreeMap<String, (String, Option<FencingToken>)>,
}

impl Judgement {
    /// Whether the lock kept its word, whatever the scenario expects.
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
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    NotAsExpected,
    Inconclusive,
    AsExpected,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Outcome::NotAsExpected => "not as expected",
            Outcome::Inconclusive => "inconclusive",
            Outcome::AsExpected => "as expected",
        })
    }
}

/// One expectation beside what was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    pub what: String,
    pub expected: String,
    /// Whether what was found is what was expected, however much is in doubt.
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
    /// Anything by a clock, in words: another in every run.
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
    /// Why the case is inconclusive, where it is.
    pub doubts: Vec<Doubt>,
}
