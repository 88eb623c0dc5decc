//! Words for all reports about whether the lock kept its promises, which is separate from
//! whether the scenario came out as expected.

use super::*;

/// Returns the outcome of the lock of a case; `None` if it never used one.
pub fn outcome(case: &CaseResult) -> Option<LockOutcome> {
    let never_used = case.judgement.promises.is_empty() && case.notes.workers.is_empty();
    let is_silent = case.notes.never_played || case.notes.is_without_writes() || never_used;
    (!is_silent).then(|| case.judgement.lock_outcome())
}

/// Returns an outcome as a table shows it.
pub fn word(outcome: LockOutcome) -> String {
    name(outcome).replace('_', " ")
}

/// Returns an outcome as in `result.json`, for pages that programs read.
pub fn name(outcome: LockOutcome) -> String {
    json!(outcome).as_str().unwrap_or_default().to_owned()
}

/// Returns half a line: `the lock kept its promises (lock server not seen)`.
pub fn summary(case: &CaseResult) -> Option<String> {
    let outcome = outcome(case)?;
    Some(match case.judgement.lock_servers_seen {
        true => outcome.to_string(),
        false => format!("{outcome} (lock server not seen)"),
    })
}

/// Returns the details beside the summary, one per line.
pub fn details(judgement: &Judgement) -> Vec<String> {
    let mut lines = Vec::new();
    if judgement.lock_outcome() == LockOutcome::NotTested {
        lines.push(not_tested(judgement));
    }
    lines.extend(broken(judgement));
    lines.extend(excused(judgement));
    // The reason about exclusion is already said above if the lock was not tested.
    let is_said = judgement.lock_outcome() == LockOutcome::NotTested;
    let unchecked = judgement.promises.iter();
    let unchecked = unchecked.filter(|(promise, _)| **promise != Promise::Exclusion || !is_said);
    let unchecked = unchecked.filter_map(|(promise, kept)| {
        let reason = kept.reason()?;
        Some(format!("{promise}: not checked, {reason}"))
    });
    lines.extend(Some(joined(unchecked, "; ")).filter(|line| !line.is_empty()));
    lines.extend(not_offered(judgement));
    lines
}

/// Explains why a lock that excludes nobody would have had the same outcome.
fn not_tested(judgement: &Judgement) -> String {
    let same = "a lock that excludes nobody would come out the same";
    match judgement.promises.get(&Promise::Exclusion) {
        Some(Kept::NotChecked(reason)) => format!("exclusion: not checked, {reason}: {same}"),
        Some(Kept::NotOffered) => format!("exclusion: not offered: {same}"),
        _ => format!("nobody asked for a key that was held: {same}"),
    }
}

/// Returns `broken: exclusion (granted_while_held 2), release (freed_another 1)`.
fn broken(judgement: &Judgement) -> Option<String> {
    let is_broken = |kept: &Kept| *kept == Kept::Broken;
    let broken = judgement.promises.iter();
    let broken = broken.filter(|(_, kept)| is_broken(kept));
    let by_kind = judgement.violations_by_kind();
    let broken = broken.map(|(promise, _)| {
        let kinds = by_kind.iter();
        let kinds = kinds.filter(|(kind, _)| kind.promise() == Some(*promise));
        let kinds: Vec<String> = kinds.map(|(kind, n)| format!("{kind} {n}")).collect();
        match kinds.is_empty() {
            true => promise.to_string(),
            false => format!("{promise} ({})", kinds.join(", ")),
        }
    });
    let broken = joined(broken, ", ");
    (!broken.is_empty()).then(|| format!("broken: {broken}"))
}

/// Returns `granted_while_held 1, excused by restart-empty of redis`, one line per excuse.
fn excused(judgement: &Judgement) -> Vec<String> {
    let mut by_excuse: BTreeMap<&str, BTreeMap<ViolationKind, u64>> = BTreeMap::new();
    for violation in &judgement.excused {
        let kinds = by_excuse.entry(excuse(violation)).or_default();
        *kinds.entry(violation.kind).or_default() += 1;
    }
    let lines = by_excuse.into_iter().map(|(excuse, kinds)| {
        let kinds = joined(kinds.iter().map(|(kind, n)| format!("{kind} {n}")), ", ");
        format!("{kinds}, excused by {excuse}")
    });
    lines.collect()
}

pub fn excuse(violation: &Violation) -> &str {
    let excuse = violation.excuse.as_ref();
    excuse.map_or("a fault that is not named", |excuse| excuse.text.as_str())
}

/// Returns `not offered: order; no fencing token`.
fn not_offered(judgement: &Judgement) -> Option<String> {
    let promises = judgement.promises.iter();
    let promises = promises.filter(|(_, kept)| **kept == Kept::NotOffered);
    let promises = promises.map(|(promise, _)| promise);
    let lacks = judgement.lacks.iter().map(|ability| match ability {
        Ability::Token => "no fencing token",
        Ability::Lost => "no signal of a lost lease",
    });
    let parts = [joined(promises, ", "), joined(lacks, ", ")];
    let parts = joined(parts.iter().filter(|part| !part.is_empty()), "; ");
    (!parts.is_empty()).then(|| format!("not offered: {parts}"))
}

/// Returns the words that introduce a doubt.
pub fn certainty(doubt: &Doubt) -> &'static str {
    if doubt.reason == DoubtReason::NotOffered {
        "not offered"
    } else {
        "not certain"
    }
}

/// Returns whether the case lacks a verdict only because of things that this lock does not offer.
pub fn is_only_not_offered(verdict: &CaseVerdict) -> bool {
    let mut doubts = verdict.doubts.iter();
    verdict.outcome == Outcome::Inconclusive
        && !verdict.doubts.is_empty()
        && doubts.all(|doubt| doubt.reason == DoubtReason::NotOffered)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::made_up::{case, excused, lock_case, violation};

    #[test]
    fn a_case_that_never_used_a_lock_says_nothing() {
        let mut silent = case("silent", None);
        assert_eq!(summary(&silent), None);
        silent.notes.workers = vec!["a".to_owned()];
        let words = "the lock was not put to the test (lock server not seen)";
        assert_eq!(summary(&silent).as_deref(), Some(words));
        silent.notes.never_played = true;
        assert_eq!(summary(&silent), None);
    }

    #[test]
    fn a_case_that_any_lock_passes_says_so_and_why() {
        let words = |kept: Kept| details(&lock_case("a", kept).judgement);
        let same = "a lock that excludes nobody would come out the same";
        assert_eq!(
            words(Kept::NotTested),
            [format!("nobody asked for a key that was held: {same}")]
        );
        assert_eq!(
            words(Kept::NotChecked("no TTL in the record".to_owned())),
            [format!(
                "exclusion: not checked, no TTL in the record: {same}"
            )]
        );
        assert_eq!(words(Kept::Kept), [""; 0]);
    }

    #[test]
    fn breaks_are_told_by_promise_and_excused_ones_by_their_excuse() {
        let mut judged = lock_case("a", Kept::Broken);
        let kind = ViolationKind::GrantedWhileHeld;
        judged.judgement.violations = vec![violation(kind), violation(kind)];
        judged.judgement.excused = vec![excused(kind, "restart-empty of redis")];
        let unchecked = Kept::NotChecked("nobody renewed".to_owned());
        let promises = &mut judged.judgement.promises;
        promises.insert(Promise::Renewal, unchecked);
        promises.insert(Promise::Order, Kept::NotOffered);
        judged.judgement.lacks = vec![Ability::Lost];
        assert_eq!(
            details(&judged.judgement),
            [
                "broken: exclusion (granted_while_held 2)",
                "granted_while_held 1, excused by restart-empty of redis",
                "renewal: not checked, nobody renewed",
                "not offered: order; no signal of a lost lease",
            ]
        );
    }

    #[test]
    fn only_what_is_not_offered_is_told_calmly() {
        let mut verdict = case("a", None).verdict;
        verdict.outcome = Outcome::Inconclusive;
        assert!(!is_only_not_offered(&verdict));
        verdict.doubts = vec![Doubt::new(DoubtReason::NotOffered, "no lost signal")];
        assert!(is_only_not_offered(&verdict));
        verdict.doubts.push(Doubt::new(DoubtReason::Gap, "torn"));
        assert!(!is_only_not_offered(&verdict));
    }
}
