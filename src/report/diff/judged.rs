//! Compares the judge's findings on a case in two runs, apart from the verdict.

use super::*;
use crate::report::document::StableCase;

/// Fields that are compared in a special way.
const APART: [&str; 7] = [
    "verdict",
    "lock",
    "violations",
    "excused",
    "promises",
    "counts",
    "findings",
];
/// The order of the other fields; those that are not named here come last.
const FIRST: [&str; 4] = ["doubts", "faults", "last_writer", "explanation"];

/// Returns the changes in what the judge says about a case that both runs have.
pub fn case_findings(name: &str, old: &ResultDocument, new: &ResultDocument) -> Vec<Change> {
    let cases = old.stable.cases.get(name).zip(new.stable.cases.get(name));
    let Some((before, after)) = cases else {
        return Vec::new();
    };
    let field = |field: &str| {
        let what = field.replace('_', " ");
        change(Some(name), &what, told(before, field), told(after, field))
    };
    let mut all: Vec<Change> = field("fence").into_iter().collect();
    let violations = [old, new].map(|run| run.violations(name));
    all.extend(kinds(name, "violations", violations));
    // Earlier versions of the program record nothing about the lock.
    if before.lock.is_some() && after.lock.is_some() {
        let excused = [old, new].map(|run| run.excused(name));
        all.extend(kinds(name, "excused", excused));
        all.extend(promises(name, old, new));
    }
    if let (Some(before), Some(after)) = (&before.counts, &after.counts) {
        // A count that only a later version of the program has is not a change.
        let both = |of: &BTreeMap<String, u64>| {
            let known = |name: &String| before.contains_key(name) && after.contains_key(name);
            let known = of.iter().filter(|(name, _)| known(name));
            known.map(|(name, n)| (name.clone(), json!(n))).collect()
        };
        all.extend(maps(name, "", &both(before), &both(after)));
    }
    let [expected, expected_now] = [before, after].map(expectations);
    all.extend(maps(name, "expectation ", &expected, &expected_now));
    let documents = [json!(before), json!(after)];
    let fields = documents.iter().filter_map(Value::as_object).flatten();
    let fields: BTreeSet<&str> = fields.map(|(field, _)| field.as_str()).collect();
    let is_said = |name: &&str| APART.contains(name) || FIRST.contains(name) || *name == "fence";
    let others = fields.into_iter().filter(|name| !is_said(name));
    all.extend(FIRST.into_iter().chain(others).filter_map(field));
    all
}

/// Returns a field as a cell shows it, shortened if it is too long.
fn told(case: &StableCase, field: &str) -> Option<Value> {
    match field {
        "doubts" => (!case.doubts.is_empty()).then(|| json!(case.doubts.join("; "))),
        "faults" => {
            let all = case.faults.as_ref()?.iter();
            let all = all.map(|one| format!("{} {}: {}", one.fault, one.target, one.came_to));
            Some(json!(joined(all, ", ")))
        }
        // The end of each story is enough to look it up.
        "explanation" => {
            let ends = case.explanation.as_ref()?.iter().map(|story| {
                let last = story.steps.last().map_or("", String::as_str);
                format!("{} steps to: {last}", story.steps.len())
            });
            Some(json!(joined(ends, "; ")))
        }
        other => json!(case).get(other).cloned(),
    }
}

fn expectations(case: &StableCase) -> BTreeMap<String, Value> {
    let words = case.findings.iter().map(|finding| {
        let found = match (finding.held, finding.found) {
            (true, _) => "held".to_owned(),
            (false, Some(found)) => format!("found {found}"),
            (false, None) => "not held".to_owned(),
        };
        (
            finding.what.clone(),
            json!(format!("{} expected, {found}", finding.expected)),
        )
    });
    words.collect()
}

/// Counts by kind, and whether they are the same in every good run.
type ByKind = Option<(BTreeMap<String, u64>, bool)>;

/// Compares violations or excused breaks. If counts differ from run to run anyway, only a kind
/// that appears or disappears is a change.
fn kinds(name: &str, called: &str, [before, after]: [ByKind; 2]) -> Vec<Change> {
    let (Some((before, counted)), Some((after, counted_too))) = (&before, &after) else {
        let said = |known: bool| known.then(|| json!("recorded"));
        let (before, after) = (said(before.is_some()), said(after.is_some()));
        return Vec::from_iter(change(Some(name), called, before, after));
    };
    let changes = names_of(before, after).into_iter().filter_map(|kind| {
        let [old, new] = [before, after].map(|all| all.get(kind).copied().unwrap_or(0));
        let means_something = (*counted && *counted_too) || (old > 0) != (new > 0);
        let what = format!("{called} {kind}");
        change(Some(name), &what, Some(json!(old)), Some(json!(new))).filter(|_| means_something)
    });
    changes.collect()
}

/// Compares the outcome of each promise of the lock. If it differs from run to run anyway, only
/// a break that appears or disappears is a change.
fn promises(name: &str, old: &ResultDocument, new: &ResultDocument) -> Vec<Change> {
    let (Some((before, same)), Some((after, same_too))) = (old.promises(name), new.promises(name))
    else {
        return Vec::new();
    };
    let is_break = |kept: Option<&String>| kept.is_some_and(|kept| kept == Kept::Broken.word());
    let words = |kept: Option<&String>| kept.map(|kept| json!(kept.replace('_', " ")));
    let changes = names_of(&before, &after).into_iter().filter_map(|promise| {
        let (old, new) = (before.get(promise), after.get(promise));
        let means_something = (same && same_too) || is_break(old) != is_break(new);
        let what = format!("promise {promise}");
        change(Some(name), &what, words(old), words(new)).filter(|_| means_something)
    });
    changes.collect()
}
