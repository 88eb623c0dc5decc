//! The overview of many runs: every scenario, its verdicts over time, and links to the pages of
//! its runs. Results that cannot be read are listed with the reason.

mod page;
mod strip;
#[cfg(test)]
mod tests;
mod trends;
mod when;

pub use page::page;
pub use when::is_of_a_run;

use super::*;
use when::when;

/// All runs of one scenario that still exist.
pub struct History {
    pub scenario: String,
    /// Oldest first.
    pub runs: Vec<Run>,
    /// The number of older runs that were not read.
    pub older: usize,
    /// Other remarks about its folder.
    pub remarks: Vec<String>,
    /// The reviewed result, or the reason why it cannot be used.
    pub baseline: Option<Result<RunDigest, String>>,
}

pub struct Run {
    /// The name of its folder: the time and the seed.
    pub name: String,
    /// The link from this page to the run's own page.
    pub link: String,
    /// Its result, or why that is unknown.
    pub seen: Result<RunDigest, String>,
}

/// The part of a result that the overview shows; thousands of whole results would not fit into
/// memory.
pub struct RunDigest {
    pub verdict: Outcome,
    cases: BTreeMap<String, Outcome>,
    /// The outcome of the lock, for the cases whose result has it.
    locks: BTreeMap<String, LockOutcome>,
    unfinished: BTreeSet<String>,
    seed: u64,
    /// The overrides of the scenario's file, and defects that were switched on.
    with: Vec<String>,
    /// Measurements by case and name.
    numbers: BTreeMap<(String, String), f64>,
}

impl RunDigest {
    pub fn of(result: &ResultDocument) -> RunDigest {
        let stable = &result.stable;
        let cases = stable.cases.iter();
        let numbers = result.measurements.iter().flat_map(|(case, measured)| {
            let numbers = diff::numbers(measured).into_iter();
            numbers.map(|(name, value)| ((case.clone(), name), value))
        });
        let mutant = stable.mutant.iter();
        let mutant = mutant.map(|mutant| format!("the defect {mutant}"));
        RunDigest {
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
            seed: stable.seed.unwrap_or_default(),
            with: stable.settings.iter().cloned().chain(mutant).collect(),
            numbers: numbers.collect(),
        }
    }

    /// Returns whether the run had neither overrides nor defects: only such runs make a trend.
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

    /// Returns whether the verdicts of all cases are the same, and no lock is broken in only
    /// one of the two.
    fn is_judged_like(&self, other: &RunDigest) -> bool {
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

    /// Returns whether the newest run differs from the baseline; `None` if one cannot be read.
    fn differs(&self) -> Option<bool> {
        let newest = self.newest()?.seen.as_ref().ok()?;
        let baseline = self.baseline.as_ref()?.as_ref().ok()?;
        Some(!newest.is_judged_like(baseline))
    }
}

fn mark_of(seen: &Result<RunDigest, String>) -> Mark {
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
