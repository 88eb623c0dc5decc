//! Expectations by a clock: a missing event can change the result either way.

use super::order::Broken;
use super::*;
use std::time::Duration;

pub(super) fn measure_finding(
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

pub(super) fn order_finding(
    record: &CaseRecord,
    expect: &Expectations,
    has_doubts: bool,
) -> Option<Finding> {
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

pub(super) fn timed_outcome(held: bool, has_doubts: bool) -> Outcome {
    match (has_doubts, held) {
        (true, _) => Outcome::Inconclusive,
        (false, true) => Outcome::AsExpected,
        (false, false) => Outcome::NotAsExpected,
    }
}
