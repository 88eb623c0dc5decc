mod counted;
mod timed;

use super::*;
use counted::expected_counts;
use timed::{measure_finding, order_finding, timed_outcome};

/// Compares the findings with the expectations.
///
/// The worst finding decides, and a doubt never becomes a pass: excess is definite
/// however incomplete the record is, while too little, or just enough, may only be the
/// part that the record happened to keep. If clocks decide, a missing event can change
/// the result either way, so a doubt leaves everything open.
///
/// The lock and the resource always have to keep their promises, whatever the case
/// expects: a break that the case does not name is never as expected.
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

/// Returns a doubt if nobody got a write through, so there was nothing to violate. If a
/// case means just that, it expects a count of writes.
fn nothing_was_tested(judgement: &Judgement, expect: &Expectations) -> Option<Doubt> {
    let of_writes = [Count::AcceptedWrites, Count::AcceptedWriters];
    let counts_writes = of_writes.iter().any(|it| expect.counts.contains_key(it));
    (judgement.counts.accepted_writes == 0 && !counts_writes).then(|| {
        let text = "no write was accepted, so nothing was put to the test";
        Doubt::new(DoubtReason::NothingTested, text)
    })
}

/// Makes a missing report of lost leases inconclusive for a lock that cannot report them:
/// that is not as bad as a lock that can and is silent.
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

#[cfg(test)]
mod tests;
