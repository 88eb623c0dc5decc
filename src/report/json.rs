//! `result.json`: a stable part that is the same in every good run, and the
//! volatile rest, so that a plain `diff` of two results shows only the rest.

use crate::model::{CaseResult, FaultStage, RunRecord};
use serde_json::{Map, Value, json};

pub const SCHEMA_VERSION: u32 = 1;

pub fn result(run: &RunRecord) -> Value {
    json!({
        "schema_version": SCHEMA_VERSION,
        "stable": stable(run),
        "evidence": by_case(run, evidence),
        "measurements": by_case(run, |case| json!(case.notes.measurements)),
        "environment": environment(run),
    })
}

/// What two good runs of one scenario have in common, to the letter.
pub fn stable(run: &RunRecord) -> Value {
    json!({
        "scenario": { "name": run.scenario, "hash": run.scenario_hash },
        "seed": run.seed,
        "mutant": run.mutant,
        "verdict": run.verdict(),
        "cases": by_case(run, stable_case),
        "unfinished": run.unfinished,
    })
}

fn by_case(run: &RunRecord, part: impl Fn(&CaseResult) -> Value) -> Value {
    let cases = run.cases.iter().map(|case| (case.name.clone(), part(case)));
    Value::Object(cases.collect::<Map<_, _>>())
}

fn stable_case(case: &CaseResult) -> Value {
    let judgement = &case.judgement;
    let stories = judgement.stories.iter().map(|story| {
        let steps: Vec<&str> = story.steps.iter().map(|s| s.symbolic.as_str()).collect();
        json!({ "key": story.key, "violations": story.kinds, "steps": steps })
    });
    let last_writers = judgement.last_writers.iter();
    let last_writers = last_writers.map(|(key, (worker, _))| (key.clone(), json!(worker)));
    json!({
        "fence": case.fence,
        "verdict": case.verdict.outcome,
        "findings": case.verdict.findings,
        "doubts": case.verdict.doubts,
        "violations": judgement.violations_by_kind(),
        "counts": judgement.counts,
        "explanation": stories.collect::<Vec<_>>(),
        "last_writer": last_writers.collect::<Map<_, _>>(),
        "faults": faults(case),
    })
}

/// Each fault once, with how it came out.
fn faults(case: &CaseResult) -> Vec<Value> {
    let requested = case.faults.iter();
    let requested = requested.filter(|row| row.stage == FaultStage::Requested);
    requested
        .map(|request| {
            let mut rows = case.faults.iter().rev();
            let last = rows.find(|row| row.id == request.id).unwrap_or(request);
            json!({ "fault": request.fault, "target": request.target, "came_to": last.stage })
        })
        .collect()
}

fn evidence(case: &CaseResult) -> Value {
    let judgement = &case.judgement;
    let stories = judgement.stories.iter().map(|story| {
        let steps = story.steps.iter().map(
            |step| json!({ "at_ms": case.millis_since_start(step.at_ns), "what": step.concrete }),
        );
        json!({ "row": story.row, "steps": steps.collect::<Vec<_>>() })
    });
    json!({
        "violations": judgement.violations,
        "overlaps": judgement.overlaps,
        "explanation": stories.collect::<Vec<_>>(),
        "values": case.notes.values,
        "resource_stale_token_rejections_total": case.notes.stale_rejections_metric,
        "faults": case.faults,
        "started_ns": case.started_ns,
    })
}

fn environment(run: &RunRecord) -> Value {
    let mut all = json!(run.environment);
    all["fencepost"] = json!(env!("CARGO_PKG_VERSION"));
    for (node, version) in run.cases.iter().flat_map(|case| &case.notes.versions) {
        all[format!("version {node}")] = json!(version);
    }
    all
}
