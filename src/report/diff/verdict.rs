//! The status of a case in both runs: its verdict and the outcome of its lock.

use super::*;

#[derive(Debug, Serialize)]
pub struct Verdict {
    pub case: String,
    pub old: CaseStatus,
    pub new: CaseStatus,
    /// `None` for a result of an earlier program, and for a case that uses no lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_lock: Option<LockOutcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_lock: Option<LockOutcome>,
    /// Whether both results contain the details that are the same in every good run, and not
    /// only the verdict.
    #[serde(skip)]
    pub determined: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, strum::Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum CaseStatus {
    /// The run ended before it had judged the case.
    Unfinished,
    /// The run does not have the case.
    Absent,
    #[serde(untagged)]
    #[strum(transparent)]
    Judged(Outcome),
}

impl Verdict {
    pub fn of(case: &str, old: &ResultDocument, new: &ResultDocument) -> Verdict {
        let lock = |run: &ResultDocument| run.stable.cases.get(case)?.lock;
        let is_determined = |run: &ResultDocument| {
            let judged = run.stable.cases.get(case);
            judged.is_some_and(|case| case.violations.is_some())
        };
        Verdict {
            case: case.to_owned(),
            old: CaseStatus::of(case, old),
            new: CaseStatus::of(case, new),
            old_lock: lock(old),
            new_lock: lock(new),
            determined: is_determined(old) && is_determined(new),
        }
    }

    pub fn is_changed(&self) -> bool {
        self.old != self.new || self.changed_lock().is_some()
    }

    /// Returns the outcomes of the lock in both runs, if their difference matters.
    fn changed_lock(&self) -> Option<(LockOutcome, LockOutcome)> {
        use LockOutcome::{Excused, Kept};
        let (old, new) = self.old_lock.zip(self.new_lock)?;
        // In a case that runs for a time, chance decides whether a fault meets a grant.
        let is_luck = !self.determined && matches!((old, new), (Kept, Excused) | (Excused, Kept));
        (old != new && !is_luck).then_some((old, new))
    }

    /// Describes the changes: `fenced as expected -> not as expected`.
    pub fn changes(&self) -> Vec<String> {
        let (case, mut all) = (&self.case, Vec::new());
        if self.old != self.new {
            all.push(format!("{case} {} -> {}", self.old, self.new));
        }
        if let Some((old, new)) = self.changed_lock() {
            let (old, new) = (lock::word(old), lock::word(new));
            all.push(format!("{case} lock {old} -> {new}"));
        }
        all
    }

    /// Returns both as cells of a table.
    pub fn cells(&self) -> [String; 2] {
        let cell = |status: CaseStatus, kept: Option<LockOutcome>| match kept {
            Some(kept) => format!("{status}, lock {}", lock::word(kept)),
            None => status.to_string(),
        };
        [cell(self.old, self.old_lock), cell(self.new, self.new_lock)]
    }

    /// Returns how heavily the change weighs. If it is unknown how a case came out, it is also
    /// unknown whether it changed.
    pub fn weight(&self) -> Outcome {
        use CaseStatus::{Judged, Unfinished};
        use Outcome::{AsExpected, Inconclusive};
        let of_the_case = match (self.old, self.new) {
            (old, new) if old == new => Outcome::AsExpected,
            (_, Judged(Inconclusive) | Unfinished) => Outcome::Inconclusive,
            (Judged(Inconclusive) | Unfinished, Judged(AsExpected)) => Outcome::Inconclusive,
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

impl CaseStatus {
    fn of(case: &str, run: &ResultDocument) -> CaseStatus {
        match run.stable.cases.get(case) {
            Some(case) => CaseStatus::Judged(case.verdict),
            None if run.stable.unfinished.iter().any(|name| name == case) => CaseStatus::Unfinished,
            None => CaseStatus::Absent,
        }
    }
}
