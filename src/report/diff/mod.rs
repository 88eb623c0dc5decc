//! Compares two results by meaning: the judgements, the conditions, and the measurements
//! without the noise.

mod human;
mod judged;
mod markdown;
mod measured;
mod verdict;

pub use human::screen;
pub use markdown::{folded, page};
pub use measured::{DEFAULT_RATIO, Measured, numbers};
pub use verdict::{CaseStatus, Verdict};

use super::*;
use judged::case_findings;

/// All differences between two runs of one scenario.
#[derive(Debug, Serialize)]
pub struct Difference {
    pub scenario: String,
    /// Whether a verdict or the outcome of a lock differs, or exists in one run only.
    pub verdict_changed: bool,
    pub verdicts: Vec<Verdict>,
    /// The differences that make two runs less comparable: the scenario's text, seed, settings.
    pub conditions: Vec<Change>,
    /// Case by case: violations, promises, counts, findings, doubts, explanation.
    pub findings: Vec<Change>,
    /// All measurements, of both runs or of only one.
    pub measurements: Vec<Measured>,
    pub environment: Vec<Change>,
}

/// Something that differs; `None` if one run does not have it.
#[derive(Debug, PartialEq, Serialize)]
pub struct Change {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    pub what: String,
    pub old: Option<Value>,
    pub new: Option<Value>,
}

#[derive(Debug, thiserror::Error, PartialEq)]
#[error("these are runs of different scenarios, {old} and {new}")]
pub struct OtherScenario {
    pub old: String,
    pub new: String,
}

/// Returns what changed from one run to another; measurements are marked if they differ by more
/// than this ratio.
pub fn compare(
    old: &ResultDocument,
    new: &ResultDocument,
    ratio: f64,
) -> Result<Difference, OtherScenario> {
    let (before, after) = (&old.stable, &new.stable);
    if before.scenario.name != after.scenario.name {
        return Err(OtherScenario {
            old: before.scenario.name.to_string(),
            new: after.scenario.name.to_string(),
        });
    }
    let mut names: BTreeSet<&Name> = names_of(&before.cases, &after.cases);
    names.extend(before.unfinished.iter().chain(&after.unfinished));
    let verdicts = names.iter().map(|case| Verdict::of(case, old, new));
    let verdicts: Vec<Verdict> = verdicts.collect();
    let mut findings = Vec::new();
    let mut measurements = Vec::new();
    for case in &names {
        findings.extend(case_findings(case, old, new));
        let of = |run: &ResultDocument| run.measurements.get(case.as_str()).cloned();
        measurements.extend(measured::compare(case, of(old), of(new), ratio));
    }
    let environment = names_of(&old.environment, &new.environment);
    let environment = environment.into_iter().filter_map(|name| {
        let of = |run: &ResultDocument| run.environment.get(name).cloned().map(Value::from);
        change(None, name, of(old), of(new))
    });
    Ok(Difference {
        scenario: before.scenario.name.to_string(),
        verdict_changed: verdicts.iter().any(Verdict::is_changed),
        conditions: conditions(old, new),
        verdicts,
        findings,
        measurements,
        environment: environment.collect(),
    })
}

impl Difference {
    /// Says in one line whether a verdict changed, which one, and how many measurements differ.
    pub fn headline(&self) -> String {
        let changed = self.verdicts.iter().flat_map(Verdict::changes);
        let changed = joined(changed, ", ");
        let changed = shown::line(&changed);
        let measured = human::measured_words(self);
        match self.verdict_changed {
            true => format!("a verdict changed ({changed}); {measured}"),
            false => format!("the same verdicts; {measured}"),
        }
    }

    pub fn weight(&self) -> Outcome {
        let weights = self.verdicts.iter().map(Verdict::weight);
        weights.min().unwrap_or(Outcome::AsExpected)
    }

    /// Returns whether there is a change worth reading. A newer kernel or image alone is not.
    pub fn is_worth_reading(&self) -> bool {
        let judged = self.verdict_changed || !self.findings.is_empty();
        judged || !self.conditions.is_empty() || self.beyond().next().is_some()
    }

    pub fn beyond(&self) -> impl Iterator<Item = &Measured> {
        self.measurements.iter().filter(|measured| measured.beyond)
    }
}

fn conditions(old: &ResultDocument, new: &ResultDocument) -> Vec<Change> {
    let known = |run: &ResultDocument| {
        let stable = &run.stable;
        let settings = stable.settings.join(", ");
        [
            json!(stable.scenario.hash),
            json!(stable.seed),
            json!(settings),
            json!(stable.mutant),
        ]
        .map(|value| Some(value).filter(|value| !value.is_null()))
    };
    let names = ["scenario text (hash)", "seed", "settings", "mutant"].into_iter();
    let values = names.zip(known(old).into_iter().zip(known(new)));
    let parts = values.filter_map(|(what, (old, new))| change(None, what, old, new));
    let mut all: Vec<Change> = parts.collect();
    for case in names_of(&old.measurements, &new.measurements) {
        let of = |run: &ResultDocument| run.measurements.get(case).map(measured::texts);
        let (old, new) = (of(old).unwrap_or_default(), of(new).unwrap_or_default());
        all.extend(maps(case, "", &old, &new));
    }
    all
}

fn maps(
    case: &str,
    prefix: &str,
    old: &BTreeMap<String, Value>,
    new: &BTreeMap<String, Value>,
) -> Vec<Change> {
    let names = names_of(old, new).into_iter();
    let changes = names.filter_map(|name| {
        let (what, old, new) = (format!("{prefix}{name}"), old.get(name), new.get(name));
        change(Some(case), &what, old.cloned(), new.cloned())
    });
    changes.collect()
}

fn change(
    case: Option<&str>,
    what: &str,
    old: Option<Value>,
    new: Option<Value>,
) -> Option<Change> {
    (old != new).then(|| Change {
        case: case.map(str::to_owned),
        what: what.to_owned(),
        old,
        new,
    })
}

fn names_of<'a, K: Ord, T>(old: &'a BTreeMap<K, T>, new: &'a BTreeMap<K, T>) -> BTreeSet<&'a K> {
    old.keys().chain(new.keys()).collect()
}

#[cfg(test)]
mod tests;
