//! Rows of earlier programs say only in words what rows hold as data now. Those words are
//! read here, when a row is read, and nowhere else.

use super::{FaultKind, FaultRow, LinkPattern, LinkScope};

/// Adds the missing data to a row of an earlier program.
pub(super) fn complete(row: &mut FaultRow) {
    if row.fault == FaultKind::Skew {
        row.by_ms = row.by_ms.or_else(|| amount(&row.detail, " ms"));
    }
    if row.fault == FaultKind::Drift {
        row.ppm = row.ppm.or_else(|| amount(&row.detail, " ppm"));
    }
    // A fault that is not an event of one node affects links.
    if row.scope.is_none() && row.fault.node_event().is_none() {
        row.scope = scope(&row.target);
    }
}

/// Reads the amount in words like `realtime by +60000 ms`.
fn amount(how: &str, unit: &str) -> Option<i64> {
    let (_, amount) = how.split_once(" by ")?;
    amount.strip_suffix(unit)?.parse().ok()
}

/// Reads words like `a, b | c` or `a -> redis, b -> any`.
fn scope(target: &str) -> Option<LinkScope> {
    if target.contains(" | ") {
        let groups = target.split(" | ");
        let groups = groups.map(|group| group.split(", ").map(str::to_owned).collect());
        return Some(LinkScope::Between(groups.collect()));
    }
    let patterns = target.split(", ").map(LinkPattern::parse);
    let patterns: Option<Vec<LinkPattern>> = patterns.collect();
    patterns.map(LinkScope::Matching)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(fault: FaultKind, target: &str, stage: &str, detail: &str) -> FaultRow {
        let row = json!({
            "at_ns": 1, "id": 1, "fault": fault, "target": target, "stage": stage, "detail": detail
        });
        serde_json::from_value(row).expect("a row of an earlier program")
    }

    #[test]
    fn moved_clock_of_an_earlier_program_is_read_from_its_words() {
        let jump = read(FaultKind::Skew, "redis", "requested", "realtime by +5 ms");
        assert_eq!((jump.by_ms, jump.ppm), (Some(5), None));
        let drift = read(
            FaultKind::Drift,
            "redis",
            "requested",
            "monotonic by -20 ppm",
        );
        assert_eq!((drift.by_ms, drift.ppm), (None, Some(-20)));
        let seen = "its realtime clock moved by +5 ms, and this machine's did not";
        assert_eq!(read(FaultKind::Skew, "redis", "observed", seen).by_ms, None);
    }

    #[test]
    fn links_of_an_earlier_program_are_read_from_its_target() {
        for (fault, target) in [
            (FaultKind::Partition, "a, b | c | d"),
            (FaultKind::Refuse, "a -> redis"),
            (FaultKind::Stall, "a -> redis, any -> resource"),
        ] {
            let row = read(fault, target, "observed", "");
            assert_eq!(row.scope.expect("links").to_string(), target);
        }
        for (fault, target) in [(FaultKind::Isolate, "a"), (FaultKind::Reset, "a redis")] {
            assert_eq!(read(fault, target, "requested", "").scope, None);
        }
    }
}
