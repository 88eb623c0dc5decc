//! How a case stood in both runs: whether it came out as written, and what became of its lock.

use crate::model::{LockOutcome, Outcome};
use crate::report::lock;
use crate::report::recorded::Recorded;
use serde::Serialize;

#[derive(Debug, Serialize)]
pub struct Verdict {
    pub case: String,
    pub old: Standing,
    pub new: Standing,
    /// Unknown of a result of an earlier program, and of a case that uses no lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_lock: Option<LockOutcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_lock: Option<LockOutcome>,
    /// Both runs say what is the same in every good run, and not only how it came out.
    #[serde(skip)]
    pub determined: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    AsExpected,
    NotAsExpected,
    Inconclusive,
    /// The run ended before it had judged the case.
    Unfinished,
    /// The run does not have the case.
    Absent,
}

impl Verdict {
    pub fn of(case: &str, old: &Recorded, new: &Recorded) -> Verdict {
        let lock = |run: &Recorded| run.stable.cases.get(case)?.lock;
        let is_determined = |run: &Recorded| {
            let judged = run.stable.cases.get(case);
            judged.is_some_and(|case| case.violations.is_some())
        };
        Verdict {
            case: case.to_owned(),
            old: Standing::of(case, old),
            new: Standing::of(case, new),
            old_lock: lock(old),
            new_lock: lock(new),
            determined: is_determined(old) && is_determined(new),
        }
    }

    pub fn is_changed(&self) -> bool {
        self.old != self.new || self.changed_lock().is_some()
    }

    /// What became of the lock in both runs, where that means something.
    fn changed_lock(&self) -> Option<(LockOutcome, LockOutcome)> {
        use LockOutcome::{Excused, Kept};
        let (old, new) = self.old_lock.zip(self.new_lock)?;
        // In a case that goes on for a time, luck decides whether a fault meets a grant.
        let is_luck = !self.determined && matches!((old, new), (Kept, Excused) | (Excused, Kept));
        (old != new && !is_luck).then_some((old, new))
    }

    /// What changed, in words: `fenced as expected -> not as expected`.
    pub fn changes(&self) -> Vec<String> {
        let (case, mut all) = (&self.case, Vec::new());
        if self.old != self.new {
            let (old, new) = (self.old.words(), self.new.words());
            all.push(format!("{case} {old} -> {new}"));
        }
        if let Some((old, new)) = self.changed_lock() {
            let (old, new) = (lock::word(old), lock::word(new));
            all.push(format!("{case} lock {old} -> {new}"));
        }
        all
    }

    /// Both, as a cell of a table has them.
    pub fn cells(&self) -> [String; 2] {
        let cell = |standing: Standing, kept: Option<LockOutcome>| match kept {
            Some(kept) => format!("{}, lock {}", standing.words(), lock::word(kept)),
            None => standing.words().to_owned(),
        };
        [cell(self.old, self.old_lock), cell(self.new, self.new_lock)]
    }

    /// What it means for whoever asks whether all is as it was. Where nobody could tell
    /// how a case stands, nobody can tell whether it changed.
    pub fn weight(&self) -> Outcome {
        use Standing::{AsExpected, Inconclusive, Unfinished};
        let of_the_case = match (self.old, self.new) {
            (old, new) if old == new => Outcome::AsExpected,
            (_, Inconclusive | Unfinished) => Outcome::Inconclusive,
            (Inconclusive | Unfinished, AsExpected) => Outcome::Inconclusive,
            _ => Outcome::NotAsExpected,
        };
        let of_the_lock = match self.changed_lock() {
            None => Outcome::AsExpected,
            Some((LockOutcome::NotTested, LockOutcome::Kept) | (_, LockOutcome::NotTested)) => {
                Outcome::Inconclusive
            }
            Some(_) => Outcome::NotAsExpected,
        };
        of_the_case.min(of_the_lock)
    }
}

impl Standing {
    fn of(case: &str, run: &Recorded) -> Standing {
        let judged = run.stable.cases.get(case);
        match judged.map(|case| case.verdict) {
            Some(Outcome::AsExpected) => Standing::AsExpected,
            Some(Outcome::NotAsExpected) => Standing::NotAsExpected,
            Some(Outcome::Inconclusive) => Standing::Inconclusive,
            None if run.stable.unfinished.iter().any(|name| name == case) => Standing::Unfinished,
            None => Standing::Absent,
        }
    }

    pub fn words(self) -> &'static str {
        match self {
            Standing::AsExpected => "as expected",
            Standing::NotAsExpected => "not as expected",
            Standing::Inconclusive => "inconclusive",
            Standing::Unfinished => "unfinished",
            Standing::Absent => "absent",
        }
    }
}
