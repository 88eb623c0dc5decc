//! Faults in a person's words.

use super::*;
use std::time::Duration;

/// Describes the beginning of a fault. `request` is the row that requested it.
pub(super) fn begins(kind: FaultKind, target: &str, request: Option<&FaultRow>) -> String {
    let moved = request.and_then(|row| jumps(target, row).or_else(|| drifts(target, row)));
    moved.unwrap_or_else(|| kind.begins(target))
}

fn jumps(target: &str, row: &FaultRow) -> Option<String> {
    let ms = row.by_ms?;
    let way = if ms < 0 { "is set back" } else { "jumps ahead" };
    let length = format_duration(Duration::from_millis(ms.unsigned_abs()));
    Some(format!("{target}'s clock {way} by {length}"))
}

fn drifts(target: &str, row: &FaultRow) -> Option<String> {
    let ppm = row.ppm?;
    let speed = if ppm < 0 { "slow" } else { "fast" };
    let ppm = ppm.unsigned_abs();
    Some(format!("{target}'s clock runs {ppm} ppm {speed} from here"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_described_with_how_far_it_is_off() {
        let (skew, drift) = (FaultKind::Skew, FaultKind::Drift);
        for (kind, by_ms, ppm, words) in [
            (skew, Some(60_000), None, "jumps ahead by 1m"),
            (skew, Some(-1_500), None, "is set back by 1500ms"),
            (skew, None, None, "is set off"),
            (drift, None, Some(2_000), "runs 2000 ppm fast from here"),
            (drift, None, Some(-2_000), "runs 2000 ppm slow from here"),
        ] {
            let row = FaultRow {
                by_ms,
                ppm,
                ..FaultRow::new(1, 1, kind, "redis-3", FaultStage::Requested)
            };
            let words = format!("redis-3's clock {words}");
            assert_eq!(begins(kind, "redis-3", Some(&row)), words);
        }
    }
}
