use super::holds::Hold;
use crate::model::{CaseRecord, EventKind, Measure, RowOutcome};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// What can be measured in a case; what there is nothing to measure of is left out.
pub(super) fn of(record: &CaseRecord, holds: &[Hold]) -> BTreeMap<Measure, Duration> {
    let measured = [
        (Measure::Blocked, blocked_ns(holds)),
        (Measure::Quiet, quiet_ns(record)),
    ];
    let measured = measured.into_iter();
    measured
        .filter_map(|(measure, ns)| Some((measure, Duration::from_nanos(ns?))))
        .collect()
}

/// The longest that a key stood blocked, over all grants: from when the new
/// holder began to ask for it, or the hold before was over if that was later,
/// to the grant. While the hold before is not over, its key is held and not
/// blocked, however long somebody waits for it.
fn blocked_ns(holds: &[Hold]) -> Option<u64> {
    let mut before: HashMap<&str, &Hold> = HashMap::new();
    let granted = holds.iter().filter(|hold| hold.grant.is_some());
    let blocked = granted.map(|hold| {
        let free_from_ns = match before.insert(hold.key, hold) {
            Some(before) => before.over_ns.unwrap_or(hold.from_ns),
            None => 0,
        };
        let from_ns = hold.wanted_ns.max(free_from_ns);
        hold.from_ns.saturating_sub(from_ns)
    });
    blocked.max()
}

/// The longest time without an accepted write, from when somebody first asked for
/// a lock to the last worker's `done`; to the last event where nobody was ever done.
fn quiet_ns(record: &CaseRecord) -> Option<u64> {
    let history = &record.history;
    let asks = |kind: &EventKind| matches!(kind, EventKind::Acquiring { .. });
    let asked = history.iter().filter(|event| asks(&event.kind));
    let start_ns = asked.map(|event| event.at_ns).min()?;
    let is_done = |kind: &EventKind| matches!(kind, EventKind::Done { .. });
    let done = history.iter().filter(|event| is_done(&event.kind));
    let last = history.iter().map(|event| event.at_ns).max();
    let end_ns = done.map(|event| event.at_ns).max().or(last)?;

    let accepted = record.log.iter();
    let accepted = accepted.filter(|row| row.outcome == RowOutcome::Accepted);
    let within = start_ns..=end_ns;
    let mut moments: Vec<u64> = accepted
        .map(|row| row.at_ns)
        .filter(|at_ns| within.contains(at_ns))
        .chain([start_ns, end_ns])
        .collect();
    moments.sort_unstable();
    moments.windows(2).map(|pair| pair[1] - pair[0]).max()
}
