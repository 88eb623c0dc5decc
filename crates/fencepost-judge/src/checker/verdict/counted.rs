//! Expectations of a number: excess is definite, and everything else needs a whole
//! record.

use super::*;

pub(super) struct Counted {
    what: String,
    range: CountRange,
    found: u64,
    /// The count that has to reach the lower bound, if it differs from all that was
    /// found.
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

    pub fn finding(self, has_doubts: bool) -> Finding {
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

/// Returns every count that is expected, or that is not expected and was found.
pub(super) fn expected_counts(judgement: &Judgement, expect: &Expectations) -> Vec<Counted> {
    let mut expected = Vec::new();
    let violations = &judgement.violations;
    if let Some(range) = expect.violations {
        // The expected violations are writes that the resource accepts; `1..` does not
        // refer to a lock that breaks a promise.
        let of_writes = violations.iter();
        let of_writes = of_writes.filter(|it| it.kind.party() == Party::Order);
        expected.push(Counted {
            at_least: of_writes.count() as u64,
            ..Counted::new(Expectations::VIOLATIONS, range, violations.len() as u64)
        });
    }
    let named = &expect.violations_by_kind;
    let is_promise = |kind: ViolationKind| kind.party() != Party::Order;
    let found = judgement.violations_by_kind();
    expected.extend(by_kind(Expectations::VIOLATIONS, &found, named, is_promise));
    // A break that a proven fault excuses does not have to be expected.
    let (what, found) = (Expectations::EXCUSED, judgement.excused_by_kind());
    let all = judgement.excused.len() as u64;
    expected.extend(expect.excused.map(|range| Counted::new(what, range, all)));
    expected.extend(by_kind(what, &found, &expect.excused_by_kind, |_| false));
    let counts = expect.counts.iter();
    expected.extend(counts.map(|(count, &range)| {
        let found = count.of(&judgement.counts);
        Counted::new(count.name(), range, found)
    }));
    expected
}

/// Returns the counts by kind. If any kind is named, one that is not named must be
/// absent; and a broken promise of the lock or the resource has to be named. Kinds that
/// are not named are listed only if they were found.
fn by_kind(
    what: &str,
    found: &BTreeMap<ViolationKind, u64>,
    named: &BTreeMap<ViolationKind, CountRange>,
    has_to_be_named: impl Fn(ViolationKind) -> bool,
) -> Vec<Counted> {
    let kinds = ViolationKind::ALL.into_iter().filter_map(|kind| {
        let found = found.get(&kind).copied().unwrap_or(0);
        let must_be_absent = !named.is_empty() || has_to_be_named(kind);
        let unexpected = (must_be_absent && found > 0).then_some(CountRange::exactly(0));
        let range = named.get(&kind).copied().or(unexpected)?;
        Some(Counted::new(format!("{what}.{kind}"), range, found))
    });
    kinds.collect()
}
