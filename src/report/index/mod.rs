//! The overview of many runs: every scenario, how its verdicts went, and where each
//! run's own page is. What cannot be read is listed with the reason.

mod page;
mod strip;
#[cfg(test)]
mod tests;
mod trends;
mod when;

pub use page::page;
pub use when::is_of_a_run;

use super::diff;
use super::mark::Mark;
use super::recorded::Recorded;
use crate::model::{LockOutcome, Name, Outcome};
use std::collections::{BTreeMap, BTreeSet};

/// All runs of one scenario that are still there.
pub struct History {
    pub scenario: String,
    /// Oldest first.
    pub runs: Vec<Run>,
    /// So many are older still, and were not read.
    pub older: usize,
    /// What else there is to say about its folder.
    pub remarks: Vec<String>,
    /// The result that somebody has reviewed, or why it is none.
    pub baseline: Option<Result<Seen, String>>,
}

pub struct Run {
    /// Its folder's name: the time and the seed.
    pub name: String,
    /// From the page to the run's own.
    pub link: String,
    /// What it came to, or why nobody can tell.
    pub seen: Result<Seen, String>,
}

/// As much of a result as the overview shows; whole results would not fit into memory
/// by the thousand.
pub struct Seen {
    pub verdict: Outcome,
    cases: BTreeMap<String, Outcome>,
    /// Of the cases whose result says what became of the lock.
    locks: BTreeMap<String, LockOutcome>,
    unfinished: BTreeSet<String>,
    seed: u64,
    /// What was laid over the scenario's file, and defects switched on.
    with: Vec<String>,
    /// By case and name.
    numbers: BTreeMap<(String, String), f64>,
}

impl Seen {
    pub fn of(result: &Recorded) -> Seen {
        let stable = &result.stable;
        let cases = stable.cases.iter();
        let numbers = result.measurements.iter().flat_map(|(case, measured)| {
            let numbers = diff::numbers(measured).into_iter();
            numbers.map(|(name, value)| ((case.clone(), name), value))
        });
        let mutant = stable.mutant.iter();
        let mutant = mutant.map(|mutant| format!("the defect {mutant}"));
        Seen {
            verdict: stable.verdict,
            cases: cases
                .map(|(name, case)| (name.to_string(), case.verdict))
                .collect(),
            locks: stable
                .cases
                .iter()
                .filter_map(|(name, case)| Some((name.to_string(), case.lock?)))
                .collect(),
            unfinished: stable.unfinished.iter().map(Name::to_string).collect(),
            seed: stable.seed,
            with: stable.settings.iter().cloned().chain(mutant).collect(),
            numbers: numbers.collect(),
        }
    }

    /// As the scenario's file says, and nothing else: only such runs make a trend.
    fn is_plain(&self) -> bool {
        self.with.is_empty()
    }

    fn cases_as_expected(&self) -> String {
        let good = self.cases.values();
        let good = good
            .filter(|outcome| **outcome == Outcome::AsExpected)
            .count();
        format!("{good} of {}", self.cases.len() + self.unfinished.len())
    }

    /// The same verdict of the same cases, and no lock broken in one of them alone.
    fn is_judged_like(&self, other: &Seen) -> bool {
        let is_broken = |lock: &LockOutcome| *lock == LockOutcome::Broken;
        let same_lock = |(case, lock): (&String, &LockOutcome)| {
            let other = other.locks.get(case);
            other.is_none_or(|other| is_broken(other) == is_broken(lock))
        };
        self.cases == other.cases
            && self.unfinished == other.unfinished
            && self.locks.iter().all(same_lock)
    }
}

impl History {
    fn newest(&self) -> Option<&Run> {
        self.runs.last()
    }

    /// The newest run and the baseline do not agree; `None` where one cannot be read.
    fn differs(&self) -> Option<bool> {
        let newest = self.newest()?.seen.as_ref().ok()?;
        let baseline = self.baseline.as_ref()?.as_ref().ok()?;
        Some(!newest.is_judged_like(baseline))
    }
}

fn mark_of(seen: &Result<Seen, String>) -> Mark {
    match seen {
        Ok(seen) => Mark::of(seen.verdict),
        Err(_) => Mark {
            name: "unreadable",
            class: "unreadable",
            sign: '–',
            words: "unreadable".to_owned(),
        },
    }
}
