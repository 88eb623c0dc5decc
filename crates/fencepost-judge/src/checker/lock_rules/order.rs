//! The promise that grants follow arrivals, for locks that make it.

use super::*;

/// An undisturbed request has reached its server within this time: two requests that
/// began closer to each other may have arrived in either order.
const ARRIVES_WITHIN_NS: u64 = 1_000_000_000;

pub(super) fn breaks<'a>(case: &Case<'_, 'a>) -> Vec<Break<'a>> {
    let holds = &case.holds.all;
    let in_order = |hold: &Hold| {
        let plan = case.record.plan.worker(hold.worker);
        plan.is_some_and(|plan| plan.in_order)
    };
    let mut found = Vec::new();
    for indexes in by_domain(holds).into_values() {
        if !indexes.iter().any(|&index| in_order(&holds[index])) {
            continue;
        }
        // Go back from the last grant, and keep the later grant that was requested first.
        let mut first_asked: Option<usize> = None;
        for &index in indexes.iter().rev() {
            let hold = &holds[index];
            if !in_order(hold) || is_disturbed(case, hold) {
                continue;
            }
            if let Some(passed) = first_asked
                && holds[passed].asked_ns.saturating_add(ARRIVES_WITHIN_NS) <= hold.asked_ns
            {
                let waiting = &holds[passed];
                let detail = format!(
                    "{} asked for {} at {} and was granted it at {}, before {}, who had asked at {}",
                    hold.worker,
                    hold.key,
                    seconds(case, hold.asked_ns),
                    seconds(case, hold.from_ns),
                    waiting.worker,
                    seconds(case, waiting.asked_ns),
                );
                let what = What(ViolationKind::GrantedOutOfOrder, hold.from_ns, detail);
                found.push(Break::by(case, index, Some(passed), what));
            }
            if first_asked.is_none_or(|first| hold.asked_ns < holds[first].asked_ns) {
                first_asked = Some(index);
            }
        }
    }
    found
}

fn is_disturbed(case: &Case, hold: &Hold) -> bool {
    let spans = case.disturbances.of_worker(hold.worker);
    spans
        .iter()
        .any(|spans| touch(spans, hold.asked_ns, hold.from_ns))
}
