//! Recorded logs, good and bad, with the verdict that each must get.

use fencepost::checker::{judge, verdict};
use fencepost::model::*;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// What a log's `expected.json` says. What is left out is not looked at.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    #[serde(rename = "about")]
    _about: String,
    /// By default everybody who says something.
    workers: Option<Vec<String>>,
    #[serde(default)]
    gaps: Vec<String>,
    /// What the resource held in the end, where that was looked at.
    #[serde(default)]
    values: BTreeMap<String, RowValue>,
    /// The resource's node, where faults befall it.
    resource: Option<String>,
    refusals_counted: Option<u64>,
    /// Whether nothing was under way any more when the log was read.
    #[serde(default)]
    settled: bool,
    /// The case's outcome where a scenario asks for no violation.
    if_no_violation_is_expected: Outcome,
    violations: BTreeMap<ViolationKind, u64>,
    counts: BTreeMap<String, u64>,
    /// In milliseconds.
    #[serde(default)]
    measures: BTreeMap<String, u64>,
    /// Orders of events, and what the finding says of each.
    #[serde(default)]
    orders: Vec<(Vec<String>, String)>,
    /// One part of each doubt, in the judge's order.
    doubts: Vec<String>,
    stories: Option<Vec<ExpectedStory>>,
    last_writers: Option<BTreeMap<String, (String, Option<FencingToken>)>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectedStory {
    row: u64,
    kinds: Vec<ViolationKind>,
    symbolic: Vec<String>,
    concrete: Option<Vec<String>>,
}

struct Log {
    name: String,
    record: CaseRecord,
    expected: Expected,
}

#[test]
fn every_log_gets_its_verdict() {
    for log in corpus() {
        let judgement = judge(&log.record);
        let (name, expected) = (&log.name, &log.expected);
        assert_eq!(
            judgement.violations_by_kind(),
            expected.violations,
            "{name}: {:#?}",
            judgement.violations
        );
        let outcome = verdict(&log.record, &judgement, &no_violations()).outcome;
        assert_eq!(outcome, expected.if_no_violation_is_expected, "{name}");
        check_counts(name, &judgement.counts, &expected.counts);
        check_measures(name, &judgement, &expected.measures);
        for (events, found) in &expected.orders {
            check_order(&log, &judgement, events, found);
        }
        check_doubts(name, &judgement.doubts, &expected.doubts);
        if let Some(stories) = &expected.stories {
            check_stories(name, &judgement.stories, stories);
        }
        if let Some(last_writers) = &expected.last_writers {
            assert_eq!(&judgement.last_writers, last_writers, "{name}");
        }
    }
}

/// A judge with one rule switched off is a mutant, and some log must notice it:
/// one that only this rule condemns.
#[test]
fn every_rule_is_the_only_one_to_catch_some_log() {
    let corpus = corpus();
    for kind in ViolationKind::ALL {
        let noticed = corpus
            .iter()
            .filter(|log| log.record.gaps.is_empty())
            .any(|log| {
                let mut judgement = judge(&log.record);
                let before = verdict(&log.record, &judgement, &no_violations()).outcome;
                judgement
                    .violations
                    .retain(|violation| violation.kind != kind);
                let after = verdict(&log.record, &judgement, &no_violations()).outcome;
                (before, after) == (Outcome::NotAsExpected, Outcome::AsExpected)
            });
        assert!(noticed, "no log is condemned by {kind} alone");
    }
}

#[test]
fn every_violation_quotes_rows_of_its_key() {
    for Log { name, record, .. } in corpus() {
        let row = |seq| record.log.iter().find(move |row| row.seq == seq);
        for violation in judge(&record).violations {
            let quoted = violation
                .against
                .map(|seq| row(seq).expect("a row that exists"));
            assert!(quoted.is_none_or(|row| row.key == violation.key), "{name}");
            assert!(!violation.detail.is_empty(), "{name}");
        }
    }
}

#[test]
fn stories_are_short_and_in_the_order_of_time() {
    for Log { name, record, .. } in corpus() {
        let judgement = judge(&record);
        assert!(judgement.stories.len() <= 3, "{name}");
        assert!(
            judgement.violations.is_empty() || !judgement.stories.is_empty(),
            "{name}"
        );
        for story in judgement.stories {
            assert!((1..=8).contains(&story.steps.len()), "{name}: {story:#?}");
            assert!(
                story.steps.is_sorted_by_key(|step| step.at_ns),
                "{name}: {story:#?}"
            );
        }
    }
}

fn no_violations() -> Expectations {
    Expectations {
        violations: Some(CountRange::exactly(0)),
        ..Expectations::default()
    }
}

fn check_counts(name: &str, counts: &Counts, expected: &BTreeMap<String, u64>) {
    let counts = serde_json::to_value(counts).expect("counts are plain data");
    for (what, &number) in expected {
        assert_eq!(counts[what], number, "{name}: {what}");
    }
}

fn check_measures(name: &str, judgement: &Judgement, expected: &BTreeMap<String, u64>) {
    let measured = judgement.measures.iter();
    let measured: BTreeMap<&str, u128> = measured
        .map(|(measure, length)| (measure.name(), length.as_millis()))
        .collect();
    for (what, &ms) in expected {
        let found = measured.get(what.as_str());
        assert_eq!(found, Some(&u128::from(ms)), "{name}: {what}");
    }
}

fn check_order(log: &Log, judgement: &Judgement, events: &[String], found: &str) {
    let order = events.iter().map(|event| Trigger::parse(event));
    let expect = Expectations {
        order: order.collect::<Option<_>>().expect("events"),
        ..Expectations::default()
    };
    let verdict = verdict(&log.record, judgement, &expect);
    let finding = &verdict.findings[0];
    let name = &log.name;
    assert_eq!(finding.found.to_string(), found, "{name}: {events:?}");
    assert_eq!(finding.held, found == "kept", "{name}: {events:?}");
}

fn check_doubts(name: &str, doubts: &[String], expected: &[String]) {
    assert_eq!(doubts.len(), expected.len(), "{name}: {doubts:#?}");
    for (doubt, part) in doubts.iter().zip(expected) {
        assert!(doubt.contains(part), "{name}: {doubt:?} has no {part:?}");
    }
}

fn check_stories(name: &str, stories: &[Story], expected: &[ExpectedStory]) {
    assert_eq!(stories.len(), expected.len(), "{name}: {stories:#?}");
    for (story, expected) in stories.iter().zip(expected) {
        let symbolic: Vec<&str> = story.steps.iter().map(|step| &*step.symbolic).collect();
        assert_eq!(symbolic, expected.symbolic, "{name}");
        if let Some(expected) = &expected.concrete {
            let concrete: Vec<&str> = story.steps.iter().map(|step| &*step.concrete).collect();
            assert_eq!(&concrete, expected, "{name}");
        }
        assert_eq!(
            (story.row, &story.kinds),
            (expected.row, &expected.kinds),
            "{name}"
        );
    }
}

fn corpus() -> Vec<Log> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let entries = fs::read_dir(&root).expect("tests/corpus exists");
    let mut folders: Vec<PathBuf> = entries
        .map(|entry| entry.expect("readable").path())
        .collect();
    folders.sort();
    assert!(
        folders.len() > 30,
        "the corpus has shrunk to {}",
        folders.len()
    );
    folders.iter().map(|folder| load(folder)).collect()
}

fn load(folder: &Path) -> Log {
    let text = fs::read_to_string(folder.join("expected.json")).expect("every log has a verdict");
    let expected: Expected =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let history: Vec<Event> = jsonl(&folder.join("history.jsonl"));
    let talkers: BTreeSet<&String> = history.iter().map(|event| &event.worker).collect();
    let talkers = talkers.into_iter().cloned().collect();
    let record = CaseRecord {
        without_writes: false,
        workers: expected.workers.clone().unwrap_or(talkers),
        history,
        log: jsonl(&folder.join("accepted.jsonl")),
        faults: jsonl(&folder.join("faults.jsonl")),
        locks: jsonl(&folder.join("locks.jsonl")),
        values: expected.values.clone(),
        resource: expected.resource.clone(),
        refusals_counted: expected.refusals_counted,
        settled: expected.settled,
        gaps: expected.gaps.clone(),
    };
    let name = folder.file_name().expect("a folder has a name");
    Log {
        name: name.to_string_lossy().into_owned(),
        record,
        expected,
    }
}

/// A file that is not there is an empty one.
fn jsonl<T: DeserializeOwned>(path: &Path) -> Vec<T> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let rows = text.lines().zip(1..).map(|(line, number)| {
        serde_json::from_str(line)
            .unwrap_or_else(|error| panic!("{}:{number}: {error}", path.display()))
    });
    rows.collect()
}
