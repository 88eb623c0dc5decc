use super::{FencingToken, Measure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// How the accepted-write log was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ViolationKind {
    /// A token was accepted below the highest that the resource had known.
    StaleAccept,
    /// The pair (token, seq) did not grow from one accepted write to the next.
    TokenRegression,
    /// One token, two owners.
    TokenTwoOwners,
    /// A, B, A: one hold's writes with another's in between.
    InterleavedWriters,
    /// A write replaced a value that its writer had never read.
    LostUpdate,
    /// The resource holds something else than what it accepted last.
    ValueNotAccepted,
    /// A worker was told 200, and the log does not have the write.
    AcknowledgedWriteLost,
}

impl ViolationKind {
    pub const ALL: [ViolationKind; 7] = [
        ViolationKind::StaleAccept,
        ViolationKind::TokenRegression,
        ViolationKind::TokenTwoOwners,
        ViolationKind::InterleavedWriters,
        ViolationKind::LostUpdate,
        ViolationKind::ValueNotAccepted,
        ViolationKind::AcknowledgedWriteLost,
    ];

    pub fn name(self) -> &'static str {
        match self {
            ViolationKind::StaleAccept => "stale_accept",
            ViolationKind::TokenRegression => "token_regression",
            ViolationKind::TokenTwoOwners => "token_two_owners",
            ViolationKind::InterleavedWriters => "interleaved_writers",
            ViolationKind::LostUpdate => "lost_update",
            ViolationKind::ValueNotAccepted => "value_not_accepted",
            ViolationKind::AcknowledgedWriteLost => "acknowledged_write_lost",
        }
    }

    pub fn parse(text: &str) -> Option<ViolationKind> {
        ViolationKind::ALL.into_iter().find(|k| k.name() == text)
    }
}

impl fmt::Display for ViolationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One broken rule, with the rows that prove it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Violation {
    pub kind: ViolationKind,
    pub key: String,
    /// The log position of the write that broke the rule.
    pub row: u64,
    /// The earlier position that it broke it against, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<u64>,
    /// With the real tokens and owners.
    pub detail: String,
}

/// A time in which a worker believed that it held a key.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    pub worker: String,
    pub key: String,
    pub token: FencingToken,
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
    /// The log position that the story ends at.
    pub row: u64,
    /// The rules that this write broke; empty where the resource refused it.
    pub kinds: Vec<ViolationKind>,
    pub steps: Vec<StoryStep>,
}

/// What the judge found, before anybody asks what was expected.
#[derive(Clone, Debug, Default)]
pub struct Judgement {
    pub violations: Vec<Violation>,
    pub overlaps: Vec<Overlap>,
    pub counts: Counts,
    /// What could be measured.
    pub measures: BTreeMap<Measure, Duration>,
    pub stories: Vec<Story>,
    /// Why the record does not support a clean answer: an unproven fault, a gap.
    pub doubts: Vec<String>,
    /// Key by key: the worker whose write stands at the end, and its token.
    pub last_writers: BTreeMap<String, (String, Option<FencingToken>)>,
}

impl Judgement {
    pub fn violations_by_kind(&self) -> BTreeMap<ViolationKind, u64> {
        let mut by_kind = BTreeMap::new();
        for violation in &self.violations {
            *by_kind.entry(violation.kind).or_insert(0) += 1;
        }
        by_kind
    }
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
    pub doubts: Vec<String>,
}
