//! What the judge says about a case in two runs, beside the verdict.

use super::{Change, change, maps, names_of};
use crate::model::Kept;
use crate::report::recorded::{Case, Recorded};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What the judge says about a case that both runs have.
pub fn case_findings(all: &mut Vec<Change>, name: &str, old: &Recorded, new: &Recorded) {
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
    let violations = [old, new].map(|run| run.violations(name));
    all.extend(kinds(name, "violations", violations));
    // An earlier program says nothing about the lock.
    if before.lock.is_some() && after.lock.is_some() {
        let excused = [old, new].map(|run| run.excused(name));
        all.extend(kinds(name, "excused", excused));
        all.extend(promises(name, old, new));
    }
    if let (Some(before), Some(after)) = (&before.counts, &after.counts) {
        // One that only a later program counts is not a change.
        let both = |of: &BTreeMap<String, u64>| -> BTreeMap<String, Value> {
            let known = |name: &String| before.contains_key(name) && after.contains_key(name);
            let known = of.iter().filter(|(name, _)| known(name));
            known.map(|(name, n)| (name.clone(), json!(n))).collect()
        };
        all.extend(maps(name, "", &both(before), &both(after)));
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

/// By kind, and whether the counts are the same in every good run.
type ByKind = Option<(BTreeMap<String, u64>, bool)>;

/// Violations, or breaks that are excused.
fn kinds(name: &str, called: &str, [before, after]: [ByKind; 2]) -> Vec<Change> {
    let (Some((before, counted)), Some((after, counted_too))) = (&before, &after) else {
        let said = |known: bool| known.then(|| json!("recorded"));
        let (before, after) = (said(before.is_some()), said(after.is_some()));
        return change(Some(name), called, before, after)
            .into_iter()
            .collect();
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
        let what = format!("{called} {kind}");
        change(Some(name), &what, Some(json!(old)), Some(json!(new)))
    });
    changes.collect()
}

/// What became of each promise of the lock. Where that differs from run to run anyway, only
/// a break that comes or goes means something.
fn promises(name: &str, old: &Recorded, new: &Recorded) -> Vec<Change> {
    let (Some((before, same)), Some((after, same_too))) = (old.promises(name), new.promises(name))
    else {
        return Vec::new();
    };
    let is_break = |kept: Option<&String>| kept.is_some_and(|kept| kept == Kept::Broken.word());
    let words = |kept: Option<&String>| kept.map(|kept| json!(kept.replace('_', " ")));
    let changes = names_of(&before, &after).into_iter().filter_map(|promise| {
        let (old, new) = (before.get(promise), after.get(promise));
        if !(same && same_too) && is_break(old) == is_break(new) {
            return None;
        }
        let what = format!("promise {promise}");
        change(Some(name), &what, words(old), words(new))
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
