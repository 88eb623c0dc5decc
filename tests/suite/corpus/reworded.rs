//! What a message says is for people: nothing is decided by its words.

use super::folder::{Log, corpus};
use super::no_violations;
use fencepost::model::*;
use fencepost_judge::checker::{judge, verdict};
use serde_json::Value;
use std::fs;
use std::path::Path;

#[test]
fn no_verdict_rests_on_the_words_of_a_message() {
    for Log { name, record, .. } in corpus() {
        let other = reworded(&record);
        let (before, after) = (judge(&record), judge(&other));
        assert_eq!(after.violations, before.violations, "{name}");
        assert_eq!(after.excused, before.excused, "{name}");
        assert_eq!(after.counts, before.counts, "{name}");
        assert_eq!(after.measures, before.measures, "{name}");
        assert_eq!(after.promises, before.promises, "{name}");
        assert_eq!(after.overlaps, before.overlaps, "{name}");
        assert_eq!(reasons(&after), reasons(&before), "{name}");
        assert_eq!(told(&after), told(&before), "{name}");
        let outcome = |record, judgement| {
            let verdict = verdict(record, judgement, &no_violations());
            let findings = verdict.findings.into_iter();
            let findings: Vec<_> = findings.map(|it| (it.what, it.held, it.outcome)).collect();
            (verdict.outcome, findings)
        };
        assert_eq!(outcome(&other, &after), outcome(&record, &before), "{name}");
    }
}

/// Without this the test above would say nothing about the words of earlier programs.
#[test]
fn corpus_has_rows_of_earlier_programs_and_of_this_one() {
    let is_missing = |row: &Value, field: &str| row.get(field).is_none();
    let rows = written_rows();
    let of_links = |row: &&Value| row["target"].as_str().is_some_and(|it| it.contains("->"));
    let unproven = |row: &&Value| row["stage"] == "unproven";
    let skews = |row: &&Value| row["fault"] == "skew" && row["stage"] == "requested";
    let old = |field: &'static str| move |row: &&Value| is_missing(row, field);
    for (field, found) in [
        (
            "scope",
            rows.iter().filter(of_links).partition(old("scope")),
        ),
        (
            "reason",
            rows.iter().filter(unproven).partition(old("reason")),
        ),
        ("by_ms", rows.iter().filter(skews).partition(old("by_ms"))),
    ] {
        let (old, new): (Vec<&Value>, Vec<&Value>) = found;
        assert!(!old.is_empty() && !new.is_empty(), "{field}");
    }
}

fn written_rows() -> Vec<Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let folders = fs::read_dir(root).expect("tests/corpus exists");
    let files = folders.map(|folder| folder.expect("readable").path().join("faults.jsonl"));
    let texts = files.filter_map(|file| fs::read_to_string(file).ok());
    let rows = texts.flat_map(|text| {
        let rows = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("a row"));
        rows.collect::<Vec<Value>>()
    });
    rows.collect()
}

/// Rows have been completed when they were read: their words may be others now. They
/// are written and read once more, so that nothing is left of the words.
fn reworded(record: &CaseRecord) -> CaseRecord {
    let mut record = record.clone();
    let other = |text: &mut String| *text = "in other words by +7 ms -> somewhere".to_owned();
    for fault in &mut record.faults {
        other(&mut fault.detail);
        // The links are the target, and not what they are called.
        if fault.scope.is_some() {
            other(&mut fault.target);
        }
        let line = serde_json::to_string(fault).expect("plain data");
        *fault = serde_json::from_str(&line).expect("a row");
    }
    for gap in &mut record.gaps {
        other(&mut gap.text);
    }
    for event in &mut record.history {
        match &mut event.kind {
            EventKind::Failed { error, .. } => other(error),
            EventKind::Lost { reason, .. } => other(reason),
            _ => {}
        }
    }
    record
}

fn reasons(judgement: &Judgement) -> Vec<&DoubtReason> {
    let doubts = judgement.doubts.iter();
    doubts.map(|doubt| &doubt.reason).collect()
}

/// Row, rules and steps of a story.
type Told<'a> = (u64, &'a [ViolationKind], Vec<(u64, StepKind)>);

/// What each story is about, and where its steps are to be found.
fn told(judgement: &Judgement) -> Vec<Told<'_>> {
    let told = judgement.stories.iter().map(|story| {
        let steps = story.steps.iter().map(|step| (step.at_ns, step.kind));
        (story.row, story.kinds.as_slice(), steps.collect())
    });
    told.collect()
}
