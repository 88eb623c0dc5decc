//! Two results compared by meaning: what was judged, under which conditions, and
//! what was measured, noise apart.

mod human;
mod markdown;
mod measured;

pub use human::screen;
pub use markdown::{folded, page};
pub use measured::{DEFAULT_RATIO, Measured, numbers};

use super::recorded::{Case, Recorded};
use crate::model::Outcome;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// All that two runs of one scenario do not have in common.
#[derive(Debug, Serialize)]
pub struct Difference {
    pub scenario: String,
    /// A verdict is another, or is there in one run only.
    pub verdict_changed: bool,
    pub verdicts: Vec<Verdict>,
    /// The scenario's text, seed, settings: what makes two runs less alike.
    pub conditions: Vec<Change>,
    /// Case by case: violations, counts, findings, doubts, explanation.
    pub findings: Vec<Change>,
    /// Everything that both measured, and what only one did.
    pub measurements: Vec<Measured>,
    pub environment: Vec<Change>,
}

/// How a case stood in both runs.
#[derive(Debug, Serialize)]
pub struct Verdict {
    pub case: String,
    pub old: Standing,
    pub new: Standing,
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
    /// What it means for whoever asks whether all is as it was. Where nobody could tell
    /// how a case stands, nobody can tell whether it changed.
    fn weight(&self) -> Outcome {
        use Standing::{AsExpected, Inconclusive, Unfinished};
        match (self.old, self.new) {
            (old, new) if old == new => Outcome::AsExpected,
            (_, Inconclusive | Unfinished) => Outcome::Inconclusive,
            (Inconclusive | Unfinished, AsExpected) => Outcome::Inconclusive,
            _ => Outcome::NotAsExpected,
        }
    }
}

impl Standing {
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
            old: before.scenario.name.clone(),
            new: after.scenario.name.clone(),
        });
    }
    let names = names(&[&before.cases, &after.cases]);
    let unfinished = before.unfinished.iter().chain(&after.unfinished);
    let names: BTreeSet<&String> = names.into_iter().chain(unfinished).collect();
    let verdicts = names.iter().map(|case| Verdict {
        case: (*case).clone(),
        old: standing(old, case),
        new: standing(new, case),
    });
    let verdicts: Vec<Verdict> = verdicts.collect();
    let mut findings = Vec::new();
    let mut measurements = Vec::new();
    for case in &names {
        case_findings(&mut findings, case, old, new);
        let of = |run: &Recorded| run.measurements.get(*case).cloned();
        measurements.extend(measured::compare(case, of(old), of(new), ratio));
    }
    let environment = names_of(&old.environment, &new.environment);
    let environment = environment.into_iter().filter_map(|name| {
        let of = |run: &Recorded| run.environment.get(name).cloned();
        change(None, name, of(old), of(new))
    });
    Ok(Difference {
        scenario: before.scenario.name.clone(),
        verdict_changed: verdicts.iter().any(|verdict| verdict.old != verdict.new),
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
        let changed = self.verdicts.iter().filter(|one| one.old != one.new);
        let changed = changed
            .map(|one| format!("{} {} -> {}", one.case, one.old.words(), one.new.words()))
            .collect::<Vec<_>>()
            .join(", ");
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

fn standing(run: &Recorded, case: &str) -> Standing {
    let judged = run.stable.cases.get(case);
    match judged.map(|case| case.verdict) {
        Some(Outcome::AsExpected) => Standing::AsExpected,
        Some(Outcome::NotAsExpected) => Standing::NotAsExpected,
        Some(Outcome::Inconclusive) => Standing::Inconclusive,
        None if run.stable.unfinished.iter().any(|name| name == case) => Standing::Unfinished,
        None => Standing::Absent,
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

/// What the judge says about a case that both runs have.
fn case_findings(all: &mut Vec<Change>, name: &str, old: &Recorded, new: &Recorded) {
    let cases = (old.stable.cases.get(name), new.stable.cases.get(name));
    let (Some(before), Some(after)) = cases else {
        return;
    };
    let same_kind = |what: &str, of: &dyn Fn(&Case) -> Option<Value>| {
        change(Some(name), what, of(before), of(after))
    };
    all.extend(same_kind("fence", &|case| {
        case.fence.clone().map(Value::from)
    }));
    all.extend(violations(name, old, new));
    if let (Some(before), Some(after)) = (&before.counts, &after.counts) {
        all.extend(maps(name, "", &as_json(before), &as_json(after)));
    }
    let findings = |case: &Case| -> BTreeMap<String, Value> {
        let words = case.findings.iter().map(|finding| {
            let found = match (finding.held, finding.found) {
                (true, _) => "held".to_owned(),
                (false, Some(found)) => format!("found {found}"),
                (false, None) => "not held".to_owned(),
            };
            let words = format!("{} expected, {found}", finding.expected);
            (finding.what.clone(), json!(words))
        });
        words.collect()
    };
    all.extend(maps(
        name,
        "expectation ",
        &findings(before),
        &findings(after),
    ));
    let doubts = |case: &Case| (!case.doubts.is_empty()).then(|| json!(case.doubts.join("; ")));
    all.extend(same_kind("doubts", &doubts));
    all.extend(same_kind("faults", &|case| {
        case.faults.as_ref().map(fault_words)
    }));
    all.extend(same_kind("last writer", &|case| case.last_writer.clone()));
    all.extend(same_kind("explanation", &|case| {
        case.explanation.as_ref().map(explanation_words)
    }));
}

fn violations(name: &str, old: &Recorded, new: &Recorded) -> Vec<Change> {
    let (before, after) = (old.violations(name), new.violations(name));
    let (Some((before, counted)), Some((after, counted_too))) = (&before, &after) else {
        let said = |known: bool| known.then(|| json!("recorded"));
        let whether = change(
            Some(name),
            "violations",
            said(before.is_some()),
            said(after.is_some()),
        );
        return whether.into_iter().collect();
    };
    let kinds = names_of(before, after).into_iter();
    let changes = kinds.filter_map(|kind| {
        let count = |all: &BTreeMap<String, u64>| all.get(kind).copied().unwrap_or(0);
        let (old, new) = (count(before), count(after));
        // Where counts differ from run to run anyway, only a kind that comes or
        // goes means something.
        if !(*counted && *counted_too) && (old > 0) == (new > 0) {
            return None;
        }
        let what = format!("violations {kind}");
        change(Some(name), &what, Some(json!(old)), Some(json!(new)))
    });
    changes.collect()
}

fn fault_words(faults: &Value) -> Value {
    let word = |fault: &Value, field: &str| fault[field].as_str().unwrap_or("?").to_owned();
    let all = faults.as_array().into_iter().flatten();
    let all = all.map(|fault| {
        let (what, whom) = (word(fault, "fault"), word(fault, "target"));
        format!("{what} {whom}: {}", word(fault, "came_to"))
    });
    json!(all.collect::<Vec<_>>().join(", "))
}

/// Too long for a cell: how each story ends is enough to go and read it.
fn explanation_words(stories: &Value) -> Value {
    let all = stories.as_array().into_iter().flatten();
    let ends = all.map(|story| {
        let steps = story["steps"].as_array().map_or(0, Vec::len);
        let last = story["steps"].as_array().and_then(|steps| steps.last());
        let last = last.and_then(Value::as_str).unwrap_or_default();
        format!("{steps} steps to: {last}")
    });
    json!(ends.collect::<Vec<_>>().join("; "))
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

fn as_json(counts: &BTreeMap<String, u64>) -> BTreeMap<String, Value> {
    let counts = counts.iter();
    counts.map(|(name, n)| (name.clone(), json!(n))).collect()
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

fn names<'a, T>(maps: &[&'a BTreeMap<String, T>]) -> BTreeSet<&'a String> {
    maps.iter().flat_map(|map| map.keys()).collect()
}

#[cfg(test)]
mod tests;
