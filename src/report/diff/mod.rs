//! Two results compared by meaning: what was judged, under which conditions, and
//! what was measured, noise apart.

mod human;
mod judged;
mod markdown;
mod measured;
mod verdict;

pub use human::screen;
pub use markdown::{folded, page};
pub use measured::{DEFAULT_RATIO, Measured, numbers};
pub use verdict::{Standing, Verdict};

use super::recorded::Recorded;
use super::shown;
use crate::model::{Name, Outcome};
use judged::case_findings;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// All that two runs of one scenario do not have in common.
#[derive(Debug, Serialize)]
pub struct Difference {
    pub scenario: String,
    /// A verdict, or what became of a lock, is another, or is there in one run only.
    pub verdict_changed: bool,
    pub verdicts: Vec<Verdict>,
    /// The scenario's text, seed, settings: what makes two runs less alike.
    pub conditions: Vec<Change>,
    /// Case by case: violations, promises, counts, findings, doubts, explanation.
    pub findings: Vec<Change>,
    /// Everything that both measured, and what only one did.
    pub measurements: Vec<Measured>,
    pub environment: Vec<Change>,
}

/// Something that is not the same; `None` where one run does not have it.
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

/// What changed from one run to another; measurements are marked when they are
/// apart by more than this ratio.
pub fn compare(old: &Recorded, new: &Recorded, ratio: f64) -> Result<Difference, OtherScenario> {
    let (before, after) = (&old.stable, &new.stable);
    if before.scenario.name != after.scenario.name {
        return Err(OtherScenario {
            old: before.scenario.name.to_string(),
            new: after.scenario.name.to_string(),
        });
    }
    let names = names(&[&before.cases, &after.cases]);
    let unfinished = before.unfinished.iter().chain(&after.unfinished);
    let names: BTreeSet<&Name> = names.into_iter().chain(unfinished).collect();
    let verdicts = names.iter().map(|case| Verdict::of(case, old, new));
    let verdicts: Vec<Verdict> = verdicts.collect();
    let mut findings = Vec::new();
    let mut measurements = Vec::new();
    for case in &names {
        case_findings(&mut findings, case, old, new);
        let of = |run: &Recorded| run.measurements.get(case.as_str()).cloned();
        measurements.extend(measured::compare(case, of(old), of(new), ratio));
    }
    let environment = names_of(&old.environment, &new.environment);
    let environment = environment.into_iter().filter_map(|name| {
        let of = |run: &Recorded| run.environment.get(name).cloned();
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
    /// In a line: whether a verdict changed, which, and how much was measured otherwise.
    pub fn headline(&self) -> String {
        let changed = self.verdicts.iter().flat_map(Verdict::changes);
        let changed = changed.collect::<Vec<_>>().join(", ");
        let changed = shown::line(&changed);
        let measured = human::measured_words(self);
        match self.verdict_changed {
            true => format!("a verdict changed ({changed}); {measured}"),
            false => format!("the same verdicts; {measured}"),
        }
    }

    /// The worst that a change of a verdict means.
    pub fn weight(&self) -> Outcome {
        let weights = self.verdicts.iter().map(Verdict::weight);
        weights.min().unwrap_or(Outcome::AsExpected)
    }

    /// Whether there is more to say than that nothing changed. A newer kernel or image
    /// alone is nothing to look at.
    pub fn is_worth_reading(&self) -> bool {
        let judged = self.verdict_changed || !self.findings.is_empty();
        judged || !self.conditions.is_empty() || self.beyond().next().is_some()
    }

    /// Measurements that noise does not explain.
    pub fn beyond(&self) -> impl Iterator<Item = &Measured> {
        self.measurements.iter().filter(|measured| measured.beyond)
    }
}

fn conditions(old: &Recorded, new: &Recorded) -> Vec<Change> {
    let part = |what: &str, of: &dyn Fn(&Recorded) -> Value| {
        let known = |value: Value| (!value.is_null()).then_some(value);
        change(None, what, known(of(old)), known(of(new)))
    };
    let parts = [
        part("scenario text (hash)", &|run| {
            json!(run.stable.scenario.hash)
        }),
        part("seed", &|run| json!(run.stable.seed)),
        part("settings", &|run| json!(run.stable.settings.join(", "))),
        part("mutant", &|run| json!(run.stable.mutant)),
    ];
    let mut all: Vec<Change> = parts.into_iter().flatten().collect();
    for case in names_of(&old.measurements, &new.measurements) {
        let of = |run: &Recorded| run.measurements.get(case).map(measured::texts);
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
        let what = format!("{prefix}{name}");
        change(
            Some(case),
            &what,
            old.get(name).cloned(),
            new.get(name).cloned(),
        )
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

fn names_of<'a, T>(
    old: &'a BTreeMap<String, T>,
    new: &'a BTreeMap<String, T>,
) -> BTreeSet<&'a String> {
    names(&[old, new])
}

fn names<'a, K: Ord, T>(maps: &[&'a BTreeMap<K, T>]) -> BTreeSet<&'a K> {
    maps.iter().flat_map(|map| map.keys()).collect()
}

#[cfg(test)]
mod tests;
