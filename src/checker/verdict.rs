use super::order::{self, Broken};
use crate::model::{
    Ability, CaseRecord, CaseVerdict, Count, CountRange, Doubt, DoubtReason, DurationRange,
    Expectations, Finding, Found, Judgement, Measure, Outcome, Party, ViolationKind,
};
use std::time::Duration;

/// Lays what was found beside what was expected.
///
/// The worst finding decides, and a doubt never becomes a pass: excess is
/// definite however incomplete the record is, while too little, or just enough,
/// may only be all that the record happened to keep. Where clocks decide, a
/// missing event can turn it either way, so a doubt leaves everything open.
///
/// Promises of the lock and of the resource are held to, whatever the case
/// expects: a break of one that it does not name is never as expected.
pub fn verdict(record: &CaseRecord, judgement: &Judgement, expect: &Expectations) -> CaseVerdict {
    let mut doubts = judgement.doubts.clone();
    if !record.without_writes {
        doubts.extend(nothing_was_tested(judgement, expect));
    }
    let has_doubts = !doubts.is_empty();

    let counted = expected_counts(judgement, expect).into_iter();
    let mut findings: Vec<Finding> = counted.map(|counted| counted.finding(has_doubts)).collect();
    let not_offered = not_offered(judgement, &mut findings);
    doubts.extend(not_offered);
    let measures = expect.measures.iter();
    findings.extend(measures.map(|(&measure, range)| {
        let measured = judgement.measures.get(&measure).copied();
        measure_finding(measure, range, measured, has_doubts)
    }));
    findings.extend(order_finding(record, expect, has_doubts));

    let without_findings = timed_outcome(true, has_doubts);
    let outcome = findings
        .iter()
        .map(|finding| finding.outcome)
        .min()
        .unwrap_or(without_findings);
    CaseVerdict {
        outcome,
        findings,
        doubts,
    }
}

/// Where nobody got a write through there was nothing to violate. A case may
/// mean just that, and then it says so by expecting a count of writes.
fn nothing_was_tested(judgement: &Judgement, expect: &Expectations) -> Option<Doubt> {
    let of_writes = [Count::AcceptedWrites, Count::AcceptedWriters];
    let counts_writes = of_writes.iter().any(|it| expect.counts.contains_key(it));
    (judgement.counts.accepted_writes == 0 && !counts_writes).then(|| {
        let text = "no write was accepted, so nothing was put to the test";
        Doubt::new(DoubtReason::NothingTested, text)
    })
}

/// A lock that has no word for a lost lease cannot say it: that is told, and is not
/// as bad as a lock that has one and is silent.
fn not_offered(judgement: &Judgement, findings: &mut [Finding]) -> Option<Doubt> {
    let lacks = judgement.lacks.contains(&Ability::Lost);
    let is_about = |finding: &&mut Finding| finding.what == Count::LostLeases.name();
    let mut findings = findings.iter_mut();
    let silent = findings.find(|finding| lacks && is_about(finding) && !finding.held)?;
    if silent.found != Found::Count(0) {
        return None;
    }
    silent.outcome = Outcome::Inconclusive;
    let text = "lost leases: not offered, this lock has no word for a lease that is gone";
    Some(Doubt::new(DoubtReason::NotOffered, text))
}

/// A count that is expected, and what was found.
struct Counted {
    what: String,
    range: CountRange,
    found: u64,
    /// What has to reach the lower bound, where that is not all that was found.
    at_least: u64,
}

impl Counted {
    fn new(what: impl Into<String>, range: CountRange, found: u64) -> Counted {
        Counted {
            what: what.into(),
            range,
            found,
            at_least: found,
        }
    }

    fn finding(self, has_doubts: bool) -> Finding {
        let too_many = self.range.max.is_some_and(|max| self.found > max);
        let held = !too_many && self.at_least >= self.range.min;
        let outcome = match (held, has_doubts) {
            (false, _) if too_many => Outcome::NotAsExpected,
            (_, true) => Outcome::Inconclusive,
            (false, false) => Outcome::NotAsExpected,
            (true, false) => Outcome::AsExpected,
        };
        Finding {
            what: self.what,
            expected: self.range.to_string(),
            held,
            found: Found::Count(self.found),
            outcome,
        }
    }
}

fn measure_finding(
    measure: Measure,
    range: &DurationRange,
    measured: Option<Duration>,
    has_doubts: bool,
) -> Finding {
    let held = measured.is_some_and(|measured| range.contains(measured));
    let words = measured.map(|measured| format!("{:.2} s", measured.as_secs_f64()));
    Finding {
        what: measure.name().to_owned(),
        expected: range.to_string(),
        held,
        found: Found::Timed(words.unwrap_or_else(|| "not at all".to_owned())),
        outcome: timed_outcome(held, has_doubts),
    }
}

fn order_finding(record: &CaseRecord, expect: &Expectations, has_doubts: bool) -> Option<Finding> {
    if expect.order.is_empty() {
        return None;
    }
    let broken = order::broken(record, &expect.order);
    let words = match &broken {
        None => "kept".to_owned(),
        Some(Broken::NeverCame(event)) => format!("not kept ({event} never came)"),
        Some(Broken::TooEarly {
            event,
            before,
            by_ns,
        }) => {
            let ms = *by_ns as f64 / 1e6;
            format!("not kept ({event} came {ms:.3} ms before {before})")
        }
    };
    Some(Finding {
        what: Expectations::ORDER.to_owned(),
        expected: expect.order_in_words(),
        held: broken.is_none(),
        found: Found::Timed(words),
        outcome: timed_outcome(broken.is_none(), has_doubts),
    })
}

fn timed_outcome(held: bool, has_doubts: bool) -> Outcome {
    match (has_doubts, held) {
        (true, _) => Outcome::Inconclusive,
        (false, true) => Outcome::AsExpected,
        (false, false) => Outcome::NotAsExpected,
    }
}

fn expected_counts(judgement: &Judgement, expect: &Expectations) -> Vec<Counted> {
    let mut expected = Vec::new();
    let violations = &judgement.violations;
    if let Some(range) = expect.violations {
        // What is to go wrong is what the resource accepts; a lock that breaks its
        // word is not meant by `1..`.
        let of_writes = violations.iter();
        let of_writes = of_writes.filter(|it| it.kind.party() == Party::Order);
        expected.push(Counted {
            at_least: of_writes.count() as u64,
            ..Counted::new(Expectations::VIOLATIONS, range, violations.len() as u64)
        });
    }
    expected.extend(expected_kinds(judgement, expect));
    expected.extend(excused(judgement, expect));
    let counts = expect.counts.iter();
    expected.extend(counts.map(|(count, &range)| {
        let found = count.of(&judgement.counts);
        Counted::new(count.name(), range, found)
    }));
    expected
}

/// Where any kind is named, one that is not named must be absent; and a broken
/// promise has to be named. Either is worth a line only if it was found.
fn expected_kinds(judgement: &Judgement, expect: &Expectations) -> Vec<Counted> {
    let by_kind = judgement.violations_by_kind();
    let any_named = !expect.violations_by_kind.is_empty();
    let kinds = ViolationKind::ALL.into_iter();
    let kinds = kinds.filter_map(|kind| {
        let found = by_kind.get(&kind).copied().unwrap_or(0);
        let has_to_be_named = any_named || kind.party() != Party::Order;
        let unexpected = (has_to_be_named && found > 0).then_some(CountRange::exactly(0));
        let named = expect.violations_by_kind.get(&kind).copied();
        let range = named.or(unexpected)?;
        Some(Counted::new(format!("violations.{kind}"), range, found))
    });
    kinds.collect()
}

/// The same for what a proven fault excuses, except that nobody has to expect it.
fn excused(judgement: &Judgement, expect: &Expectations) -> Vec<Counted> {
    let mut expected = Vec::new();
    if let Some(range) = expect.excused {
        let found = judgement.excused.len() as u64;
        expected.push(Counted::new(Expectations::EXCUSED, range, found));
    }
    let any_named = !expect.excused_by_kind.is_empty();
    expected.extend(ViolationKind::ALL.into_iter().filter_map(|kind| {
        let found = judgement
            .excused
            .iter()
            .filter(|it| it.kind == kind)
            .count() as u64;
        let unexpected = (any_named && found > 0).then_some(CountRange::exactly(0));
        let named = expect.excused_by_kind.get(&kind).copied();
        let range = named.or(unexpected)?;
        Some(Counted::new(format!("excused.{kind}"), range, found))
    }));
    expected
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Counts, Trigger, Violation};
    use std::collections::BTreeMap;

    fn doubt(text: &str) -> Doubt {
        Doubt::new(DoubtReason::Gap, text)
    }

    fn judgement(kinds: &[ViolationKind], doubts: &[&str]) -> Judgement {
        let violations = kinds.iter().map(|&kind| Violation {
            kind,
            key: "k".into(),
            row: 1,
            against: None,
            at_ns: 0,
            workers: Vec::new(),
            detail: String::new(),
            excuse: None,
        });
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
}
