//! `result.json`: a stable part that is the same in every good run, and the
//! volatile rest, so that a plain `diff` of two results shows only the rest.

use super::lock;
use crate::model::{CaseResult, FaultStage, RunRecord};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

pub const SCHEMA_VERSION: u32 = 1;

pub fn result(run: &RunRecord) -> Value {
    json!({
        "schema_version": SCHEMA_VERSION,
        "stable": stable(run),
        "evidence": by_case(run, evidence),
        "measurements": by_case(run, measurements),
        "environment": environment(run),
    })
}

/// What two good runs of one scenario have in common, to the letter.
pub fn stable(run: &RunRecord) -> Value {
    json!({
        "scenario": { "name": run.scenario, "hash": run.scenario_hash },
        "seed": run.seed,
        "settings": run.settings,
        "mutant": run.mutant,
        "verdict": run.verdict(),
        "cases": by_case(run, stable_case),
        "unfinished": run.unfinished,
    })
}

fn by_case(run: &RunRecord, part: impl Fn(&CaseResult) -> Value) -> Value {
    let cases = run
        .cases
        .iter()
        .map(|case| (case.name.to_string(), part(case)));
    Value::Object(cases.collect::<Map<_, _>>())
}

fn stable_case(case: &CaseResult) -> Value {
    let judgement = &case.judgement;
    let stories = judgement.stories.iter().map(|story| {
        let steps: Vec<&str> = story.steps.iter().map(|s| s.symbolic.as_str()).collect();
        json!({ "key": story.key, "violations": story.kinds, "steps": steps })
    });
    let mut stable = json!({
        "fence": case.fence,
        "verdict": case.verdict.outcome,
        "findings": case.verdict.findings,
        "doubts": case.verdict.doubts,
    });
    if let Some(outcome) = lock::outcome(case) {
        stable["lock"] = json!(outcome);
    }
    if !case.determined {
        let findings = stable["findings"].as_array_mut().into_iter().flatten();
        findings
            .filter_map(Value::as_object_mut)
            .for_each(|finding| {
                finding.remove("found");
            });
        return stable;
    }
    stable["violations"] = json!(judgement.violations_by_kind());
    stable["excused"] = json!(judgement.excused_by_kind());
    let promises = judgement.promises.iter();
    let promises = promises.map(|(promise, kept)| (promise.to_string(), json!(kept.word())));
    stable["promises"] = Value::Object(promises.collect());
    stable["counts"] = json!(judgement.counts);
    // What may have overlapped depends on how soon it was seen, and who finds a key
    // held on who is faster.
    if let Some(counts) = stable["counts"].as_object_mut() {
        counts.remove("possible_overlaps");
        counts.remove("contended");
    }
    stable["explanation"] = json!(stories.collect::<Vec<_>>());
    stable["last_writer"] = last_writers(case);
    stable["faults"] = json!(faults(case));
    stable
}

/// Of the keys that a story is about: among workers that only take turns,
/// anybody may be the last.
fn last_writers(case: &CaseResult) -> Value {
    let told = |key: &String| case.judgement.stories.iter().any(|story| story.key == *key);
    let all = case.judgement.last_writers.iter();
    let told = all.filter(|(key, _)| told(key));
    let names = told.map(|(key, (worker, _))| (key.clone(), json!(worker)));
    Value::Object(names.collect())
}

/// Each fault once, with how it came out.
fn faults(case: &CaseResult) -> Vec<Value> {
    let last = case.faults.iter().map(|row| (row.id, row.stage));
    let last: HashMap<u32, FaultStage> = last.collect();
    let requested = case.faults.iter();
    let requested = requested.filter(|row| row.stage == FaultStage::Requested);
    requested
        .map(|request| {
            let came_to = last.get(&request.id);
            json!({ "fault": request.fault, "target": request.called(), "came_to": came_to })
        })
        .collect()
}

fn evidence(case: &CaseResult) -> Value {
    let judgement = &case.judgement;
    let stories = judgement.stories.iter().map(|story| {
        let steps = story.steps.iter().map(
            |step| json!({ "at_ms": case.millis_since_start(step.at_ns), "what": step.concrete }),
        );
        json!({ "row": story.row, "title": story.title, "steps": steps.collect::<Vec<_>>() })
    });
    let promises = judgement.promises.iter().map(|(promise, kept)| {
        let mut became = json!({ "outcome": kept.word() });
        if let Some(reason) = kept.reason() {
            became["reason"] = json!(reason);
        }
        (promise.to_string(), became)
    });
    let findings = case.verdict.findings.iter();
    let timed = findings.filter(|finding| finding.found.differs_from_run_to_run());
    let timed = timed.map(|finding| (finding.what.clone(), json!(finding.found)));
    json!({
        "findings": timed.collect::<Map<_, _>>(),
        "counts": judgement.counts,
        "violations": judgement.violations,
        "excused": judgement.excused,
        "promises": promises.collect::<Map<_, _>>(),
        "lock_servers_seen": judgement.lock_servers_seen,
        "lacks": judgement.lacks,
        "overlaps": judgement.overlaps,
        "explanation": stories.collect::<Vec<_>>(),
        "values": case.notes.values,
        "resource_stale_token_rejections_total": case.notes.stale_rejections_metric,
        "faults": case.faults,
        "started_ns": case.started_ns,
    })
}

fn measurements(case: &CaseResult) -> Value {
    let mut all = json!(case.notes.measurements);
    if let Some(load) = &case.notes.load {
        all["load"] = json!(load);
    }
    all
}

/// Of a recorded run, the version that recorded it.
pub fn environment(run: &RunRecord) -> Value {
    let mut all = json!(run.environment);
    if all["fencepost"].is_null() {
        all["fencepost"] = json!(env!("CARGO_PKG_VERSION"));
    }
    for (node, version) in run.cases.iter().flat_map(|case| &case.notes.versions) {
        all[format!("version {node}")] = json!(version);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Kept, Promise, ViolationKind};
    use crate::report::made_up::{case, excused, lock_case, run, violation};

    #[test]
    fn what_became_of_the_lock_is_told_beside_the_verdict() {
        let mut case = lock_case("fenced", Kept::Broken);
        let kind = ViolationKind::GrantedWhileHeld;
        case.judgement.violations = vec![violation(kind)];
        case.judgement.excused = vec![excused(kind, "restart-empty of redis")];
        let unchecked = Kept::NotChecked("no TTL in the record".to_owned());
        case.judgement.promises.insert(Promise::Loss, unchecked);
        case.determined = true;
        let result = result(&run(vec![case]));
        let stable = &result["stable"]["cases"]["fenced"];
        assert_eq!(
            (&stable["verdict"], &stable["lock"]),
            (&json!("as_expected"), &json!("broken"))
        );
        assert_eq!(stable["excused"], json!({ "granted_while_held": 1 }));
        assert_eq!(
            stable["promises"],
            json!({ "exclusion": "broken", "loss": "not_checked" })
        );
        let evidence = &result["evidence"]["fenced"];
        let loss = json!({ "outcome": "not_checked", "reason": "no TTL in the record" });
        assert_eq!(evidence["promises"]["loss"], loss);
        assert_eq!(
            evidence["promises"]["exclusion"],
            json!({ "outcome": "broken" })
        );
        assert_eq!(
            evidence["excused"][0]["excuse"]["text"],
            "restart-empty of redis"
        );
        assert_eq!(evidence["violations"][0]["row"], 0);
        assert_eq!(evidence["lock_servers_seen"], true);
    }

    #[test]
    fn a_case_that_never_used_a_lock_has_no_outcome_of_one() {
        let result = result(&run(vec![case("silent", None)]));
        assert!(result["stable"]["cases"]["silent"].get("lock").is_none());
    }

    #[test]
    fn of_a_case_that_differs_from_run_to_run_only_the_outcome_is_stable() {
        let result = result(&run(vec![lock_case("storm", Kept::Kept)]));
        let stable = &result["stable"]["cases"]["storm"];
        assert_eq!(stable["lock"], "kept");
        assert!(stable.get("promises").is_none() && stable.get("excused").is_none());
    }
}
