use crate::model::{
    CaseVerdict, CountRange, Expectations, Finding, Judgement, Outcome, ViolationKind,
};

/// Lays what was found beside what was expected.
///
/// The worst finding decides, and a doubt never becomes a pass: excess is
/// definite however incomplete the record is, while too little, or just enough,
/// may only be all that the record happened to keep.
pub fn verdict(judgement: &Judgement, expect: &Expectations) -> CaseVerdict {
    let mut doubts = judgement.doubts.clone();
    doubts.extend(nothing_was_tested(judgement, expect));
    let has_doubts = !doubts.is_empty();
    let findings: Vec<Finding> = expected_counts(judgement, expect)
        .into_iter()
        .map(|(what, range, found)| Finding {
            what,
            expected: range.to_string(),
            found,
            outcome: outcome(range, found, has_doubts),
        })
        .collect();
    let without_findings = if has_doubts {
        Outcome::Inconclusive
    } else {
        Outcome::AsExpected
    };
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
fn nothing_was_tested(judgement: &Judgement, expect: &Expectations) -> Option<String> {
    let counts_writes = expect.accepted_writes.is_some() || expect.accepted_writers.is_some();
    (judgement.counts.accepted_writes == 0 && !counts_writes)
        .then(|| "no write was accepted, so nothing was put to the test".to_owned())
}

fn outcome(range: CountRange, found: u64, has_doubts: bool) -> Outcome {
    let too_many = range.max.is_some_and(|max| found > max);
    if too_many {
        Outcome::NotAsExpected
    } else if has_doubts {
        Outcome::Inconclusive
    } else if found < range.min {
        Outcome::NotAsExpected
    } else {
        Outcome::AsExpected
    }
}

fn expected_counts(judgement: &Judgement, expect: &Expectations) -> Vec<(String, CountRange, u64)> {
    let counts = &judgement.counts;
    let violations = judgement.violations.len() as u64;
    let mut expected = Vec::new();
    if let Some(range) = expect.violations {
        expected.push(("violations".to_owned(), range, violations));
    }
    expected.extend(expected_kinds(judgement, expect));
    let others = [
        (
            "accepted_writers",
            expect.accepted_writers,
            counts.accepted_writers,
        ),
        (
            "accepted_writes",
            expect.accepted_writes,
            counts.accepted_writes,
        ),
        (
            "stale_rejections",
            expect.stale_rejections,
            counts.stale_rejections,
        ),
        (
            "rightful_rejections",
            expect.rightful_rejections,
            counts.rightful_rejections,
        ),
        ("overlaps", expect.overlaps, counts.definite_overlaps),
    ];
    expected.extend(
        others
            .into_iter()
            .filter_map(|(what, range, found)| Some((what.to_owned(), range?, found))),
    );
    expected
}

/// Where any kind is named, one that is not named must be absent; it is worth a
/// line only if it was found.
fn expected_kinds(judgement: &Judgement, expect: &Expectations) -> Vec<(String, CountRange, u64)> {
    let by_kind = judgement.violations_by_kind();
    let any_named = !expect.violations_by_kind.is_empty();
    ViolationKind::ALL
        .into_iter()
        .filter_map(|kind| {
            let found = by_kind.get(&kind).copied().unwrap_or(0);
            let unexpected = (any_named && found > 0).then_some(CountRange::exactly(0));
            let range = expect
                .violations_by_kind
                .get(&kind)
                .copied()
                .or(unexpected)?;
            Some((format!("violations.{kind}"), range, found))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Counts, Violation};

    fn judgement(kinds: &[ViolationKind], doubts: &[&str]) -> Judgement {
        let violations = kinds.iter().map(|&kind| Violation {
            kind,
            key: "k".into(),
            row: 1,
            against: None,
            detail: String::new(),
        });
        Judgement {
            violations: violations.collect(),
            doubts: doubts.iter().map(|&doubt| doubt.to_owned()).collect(),
            counts: Counts {
                accepted_writes: 1,
                ..Counts::default()
            },
            ..Judgement::default()
        }
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
            let verdict = verdict(&judgement(found, doubts), &violations(range));
            assert_eq!(verdict.outcome, outcome, "{found:?} {doubts:?} {range}");
            assert_eq!(verdict.findings.len(), 1);
            assert_eq!(verdict.doubts, doubts);
        }
    }

    #[test]
    fn a_case_without_a_write_is_no_pass_unless_it_means_that() {
        let nobody = Judgement::default();
        let verdict_on = |expect: &Expectations| verdict(&nobody, expect).outcome;
        assert_eq!(verdict_on(&violations("0")), Outcome::Inconclusive);
        let meant = Expectations {
            accepted_writes: CountRange::parse("0"),
            ..violations("0")
        };
        assert_eq!(verdict_on(&meant), Outcome::AsExpected);
    }

    #[test]
    fn without_expectations_only_doubts_count() {
        let nothing = Expectations::default();
        let clean = verdict(&judgement(&[], &[]), &nothing);
        assert_eq!(clean.outcome, Outcome::AsExpected);
        let doubtful = verdict(&judgement(&[], &["gap"]), &nothing);
        assert_eq!(doubtful.outcome, Outcome::Inconclusive);
    }

    #[test]
    fn a_kind_that_is_not_named_must_be_absent() {
        let mut expect = Expectations::default();
        let lost = ViolationKind::LostUpdate;
        expect
            .violations_by_kind
            .insert(lost, CountRange { min: 1, max: None });
        let as_named = verdict(&judgement(&[lost], &[]), &expect);
        assert_eq!(as_named.outcome, Outcome::AsExpected);
        assert_eq!(as_named.findings[0].what, "violations.lost_update");

        let both = judgement(&[lost, ViolationKind::TokenTwoOwners], &[]);
        let one_too_many = verdict(&both, &expect);
        assert_eq!(one_too_many.outcome, Outcome::NotAsExpected);
        assert_eq!(one_too_many.findings.len(), 2);
    }
}
