use super::*;
use std::time::Duration;

fn doubt(text: &str) -> Doubt {
    Doubt::new(DoubtReason::Gap, text)
}

fn judgement(kinds: &[ViolationKind], doubts: &[&str]) -> Judgement {
    let violation = |&kind| Violation::new(kind, "k", 1, 0, String::new());
    let violations = kinds.iter().map(violation);
    Judgement {
        violations: violations.collect(),
        doubts: doubts.iter().map(|&text| doubt(text)).collect(),
        counts: Counts {
            accepted_writes: 1,
            ..Counts::default()
        },
        ..Judgement::default()
    }
}

fn on(judgement: &Judgement, expect: &Expectations) -> CaseVerdict {
    verdict(&CaseRecord::default(), judgement, expect)
}

fn violations(range: &str) -> Expectations {
    Expectations {
        violations: CountRange::parse(range),
        ..Expectations::default()
    }
}

#[test]
fn excess_is_definite_and_the_rest_needs_a_whole_record() {
    use Outcome::{AsExpected, Inconclusive, NotAsExpected};
    let one = [ViolationKind::StaleAccept];
    for (found, doubts, range, outcome) in [
        (&one[..], &[][..], "0", NotAsExpected),
        (&one, &["gap"], "0", NotAsExpected),
        (&one, &[], "2..", NotAsExpected),
        (&one, &["gap"], "2..", Inconclusive),
        (&one, &[], "1..", AsExpected),
        (&one, &["gap"], "1..", Inconclusive),
        (&[], &["gap"], "0", Inconclusive),
    ] {
        let verdict = on(&judgement(found, doubts), &violations(range));
        assert_eq!(verdict.outcome, outcome, "{found:?} {doubts:?} {range}");
        assert_eq!(verdict.findings.len(), 1);
        let said: Vec<&str> = verdict.doubts.iter().map(|it| it.text.as_str()).collect();
        assert_eq!(said, doubts);
    }
}

#[test]
fn a_case_without_a_write_is_no_pass_unless_it_means_that() {
    let nobody = Judgement::default();
    let verdict_on = |expect: &Expectations| on(&nobody, expect).outcome;
    assert_eq!(verdict_on(&violations("0")), Outcome::Inconclusive);
    let meant = Expectations {
        counts: BTreeMap::from([(Count::AcceptedWrites, CountRange::exactly(0))]),
        ..violations("0")
    };
    assert_eq!(verdict_on(&meant), Outcome::AsExpected);
}

#[test]
fn where_nobody_was_meant_to_write_only_doubts_count() {
    let record = CaseRecord {
        without_writes: true,
        ..CaseRecord::default()
    };
    let nothing = Expectations::default();
    let done = verdict(&record, &Judgement::default(), &nothing);
    assert_eq!(done.outcome, Outcome::AsExpected);
    let cut_short = Judgement {
        doubts: vec![doubt("cut short")],
        ..Judgement::default()
    };
    let cut_short = verdict(&record, &cut_short, &nothing);
    assert_eq!(cut_short.outcome, Outcome::Inconclusive);
}

#[test]
fn without_expectations_only_doubts_count() {
    let nothing = Expectations::default();
    let clean = on(&judgement(&[], &[]), &nothing);
    assert_eq!(clean.outcome, Outcome::AsExpected);
    let doubtful = on(&judgement(&[], &["gap"]), &nothing);
    assert_eq!(doubtful.outcome, Outcome::Inconclusive);
}

#[test]
fn a_kind_that_is_not_named_must_be_absent() {
    let mut expect = Expectations::default();
    let lost = ViolationKind::LostUpdate;
    expect
        .violations_by_kind
        .insert(lost, CountRange { min: 1, max: None });
    let as_named = on(&judgement(&[lost], &[]), &expect);
    assert_eq!(as_named.outcome, Outcome::AsExpected);
    assert_eq!(as_named.findings[0].what, "violations.lost_update");

    let both = judgement(&[lost, ViolationKind::TokenTwoOwners], &[]);
    let one_too_many = on(&both, &expect);
    assert_eq!(one_too_many.outcome, Outcome::NotAsExpected);
    assert_eq!(one_too_many.findings.len(), 2);
}

#[test]
fn a_duration_is_within_its_range_or_not_and_a_doubt_leaves_it_open() {
    use Outcome::{AsExpected, Inconclusive, NotAsExpected};
    for (measured_ms, doubts, range, held, outcome) in [
        (Some(1980), &[][..], "1s..4s", true, AsExpected),
        (Some(1980), &[], "8s..", false, NotAsExpected),
        (Some(1980), &[], "..1s", false, NotAsExpected),
        (Some(1980), &["gap"], "..1s", false, Inconclusive),
        (Some(1980), &["gap"], "1s..", true, Inconclusive),
        (None, &[], "..1s", false, NotAsExpected),
    ] {
        let mut judgement = judgement(&[], doubts);
        let measured = measured_ms.map(|ms| (Measure::Blocked, Duration::from_millis(ms)));
        judgement.measures = measured.into_iter().collect();
        let range = DurationRange::parse(range).unwrap();
        let expect = Expectations {
            measures: BTreeMap::from([(Measure::Blocked, range)]),
            ..Expectations::default()
        };
        let verdict = on(&judgement, &expect);
        let finding = &verdict.findings[0];
        let found = (finding.held, verdict.outcome);
        assert_eq!(found, (held, outcome), "{measured_ms:?} {range}");
    }
}

#[test]
fn what_a_clock_says_is_not_in_the_stable_part() {
    let expect = Expectations {
        order: vec![Trigger::parse("a.acquired").unwrap()],
        ..violations("0")
    };
    let verdict = on(&judgement(&[], &[]), &expect);
    let told = serde_json::to_value(&verdict.findings).unwrap();
    assert_eq!(told[0]["found"], 0);
    assert_eq!(told[1]["what"], "order");
    assert_eq!(
        (&told[1]["held"], told[1].get("found")),
        (&false.into(), None)
    );
}

#[test]
fn a_promise_that_is_broken_has_to_be_named_whatever_else_is_expected() {
    use Outcome::{AsExpected, NotAsExpected};
    let stale = ViolationKind::StaleAccept;
    let lock = ViolationKind::GrantedWhileHeld;
    let resource = ViolationKind::UntrueRefusal;
    for (found, range, outcome) in [
        (&[stale][..], "1..", AsExpected),
        (&[lock], "1..", NotAsExpected),
        (&[stale, lock], "1..", NotAsExpected),
        (&[stale, resource], "1..", NotAsExpected),
        (&[lock], "0", NotAsExpected),
    ] {
        let verdict = on(&judgement(found, &[]), &violations(range));
        assert_eq!(verdict.outcome, outcome, "{found:?} {range}");
    }
    let unsaid = on(&judgement(&[lock], &[]), &Expectations::default());
    assert_eq!(unsaid.outcome, NotAsExpected);
    let named = Expectations {
        violations_by_kind: BTreeMap::from([(lock, CountRange::exactly(1))]),
        ..Expectations::default()
    };
    assert_eq!(on(&judgement(&[lock], &[]), &named).outcome, AsExpected);
}

#[test]
fn an_excused_break_is_looked_at_only_where_the_case_names_it() {
    let excused = Judgement {
        excused: judgement(&[ViolationKind::GrantedWhileHeld], &[]).violations,
        ..judgement(&[], &[])
    };
    assert_eq!(on(&excused, &violations("0")).outcome, Outcome::AsExpected);
    for (range, outcome) in [("1", Outcome::AsExpected), ("2", Outcome::NotAsExpected)] {
        let expect = Expectations {
            excused: CountRange::parse(range),
            ..violations("0")
        };
        assert_eq!(on(&excused, &expect).outcome, outcome, "{range}");
    }
}

#[test]
fn what_a_lock_does_not_offer_is_not_held_against_it() {
    let expect = Expectations {
        counts: BTreeMap::from([(Count::LostLeases, CountRange::exactly(1))]),
        ..violations("0")
    };
    let silent = judgement(&[], &[]);
    assert_eq!(on(&silent, &expect).outcome, Outcome::NotAsExpected);
    let wordless = Judgement {
        lacks: vec![Ability::Lost],
        ..silent
    };
    let verdict = on(&wordless, &expect);
    assert_eq!(verdict.outcome, Outcome::Inconclusive);
    assert_eq!(verdict.doubts[0].reason, DoubtReason::NotOffered);
}
