//! Recorded logs, good and bad, with the verdict that each must get.

mod folder;
mod reworded;

use fencepost::model::*;
use fencepost_judge::checker::{judge, verdict};
use folder::{ExpectedStory, Log, corpus};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn every_log_gets_its_verdict() {
    // All that are judged otherwise, not only the first.
    let corpus = corpus();
    let judged = |log: &&Log| std::panic::catch_unwind(|| check(log)).is_err();
    let otherwise: Vec<&str> = corpus.iter().filter(judged).map(|log| &*log.name).collect();
    assert!(otherwise.is_empty(), "judged otherwise: {otherwise:?}");
}

fn check(log: &Log) {
    let judgement = judge(&log.record);
    let (name, expected) = (&log.name, &log.expected);
    assert_eq!(
        judgement.violations_by_kind(),
        expected.violations,
        "{name}: {:#?}",
        judgement.violations
    );
    let excused = judgement.excused_by_kind();
    assert_eq!(
        excused, expected.excused,
        "{name}: {:#?}",
        judgement.excused
    );
    for (promise, word) in &expected.promises {
        let mut kept = judgement.promises.iter();
        let kept = kept.find(|(known, _)| known.name() == promise);
        let kept = kept.map(|(_, kept)| kept.word());
        assert_eq!(kept, Some(word.as_str()), "{name}: {promise}");
    }
    let outcome = verdict(&log.record, &judgement, &no_violations()).outcome;
    assert_eq!(outcome, expected.if_no_violation_is_expected, "{name}");
    check_counts(name, &judgement.counts, &expected.counts);
    check_measures(name, &judgement, &expected.measures);
    for (events, found) in &expected.orders {
        check_order(log, &judgement, events, found);
    }
    check_doubts(name, &judgement.doubts, &expected.doubts);
    if let Some(stories) = &expected.stories {
        check_stories(name, &judgement.stories, stories);
    }
    if let Some(last_writers) = &expected.last_writers {
        assert_eq!(&judgement.last_writers, last_writers, "{name}");
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

/// A rule that accuses too readily is as wrong as one that does not see.
#[test]
fn every_rule_has_a_near_miss_that_it_does_not_accuse() {
    let corpus = corpus();
    for kind in ViolationKind::ALL {
        let prefix = format!("near-{}-", kind.name().replace('_', "-"));
        let mut near = corpus.iter().filter(|log| log.name.starts_with(&prefix));
        let accuses = |log: &Log| !judge(&log.record).violations.is_empty();
        assert!(
            near.clone().next().is_some(),
            "{kind} has no folder {prefix}…"
        );
        let accused = near.find(|log| accuses(log)).map(|log| &log.name);
        assert_eq!(accused, None, "{kind}");
    }
}

/// A judge that does not know an excuse is a mutant, too. Whatever is excused
/// anywhere has a log that comes out well by that excuse alone.
#[test]
fn every_excuse_is_the_only_one_to_save_some_log() {
    let corpus = corpus();
    let excused = corpus.iter().flat_map(|log| log.expected.excused.keys());
    let excused: BTreeSet<ViolationKind> = excused.copied().collect();
    assert!(!excused.is_empty());
    for kind in excused {
        let saved = corpus.iter().any(|log| {
            let mut judgement = judge(&log.record);
            let before = verdict(&log.record, &judgement, &no_violations()).outcome;
            let of_kind = judgement.excused.iter().filter(|it| it.kind == kind);
            judgement.violations = of_kind.cloned().collect();
            let after = verdict(&log.record, &judgement, &no_violations()).outcome;
            (before, after) == (Outcome::AsExpected, Outcome::NotAsExpected)
        });
        assert!(saved, "no log is saved by the excuse of {kind} alone");
    }
}

#[test]
fn every_promise_is_kept_in_some_log_and_broken_in_another() {
    let corpus = corpus();
    for &promise in Promise::ALL {
        for word in ["kept", "broken"] {
            let found = corpus.iter().any(|log| {
                let expected = log.expected.promises.get(promise.name());
                expected.is_some_and(|expected| expected == word)
            });
            assert!(found, "no log expects {promise} to be {word}");
        }
    }
}

#[test]
fn every_violation_quotes_rows_of_its_key() {
    for Log { name, record, .. } in corpus() {
        let row = |seq| record.log.rows.iter().find(move |row| row.seq == seq);
        for violation in judge(&record).violations {
            let quoted = violation
                .against
                .map(|seq| row(seq).expect("a row that exists"));
            assert!(
                quoted.is_none_or(|row| record.log.key_of(row) == violation.key),
                "{name}"
            );
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

fn check_doubts(name: &str, doubts: &[Doubt], expected: &[String]) {
    assert_eq!(doubts.len(), expected.len(), "{name}: {doubts:#?}");
    for (doubt, part) in doubts.iter().zip(expected) {
        assert!(
            doubt.text.contains(part),
            "{name}: {doubt:?} has no {part:?}"
        );
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
