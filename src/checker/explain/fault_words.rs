//! Faults as a person would tell them.

use crate::model::{FaultKind, format_duration};
use std::time::Duration;

/// `how` is what was asked for beside kind and target, as the record has it.
pub(super) fn begins(kind: FaultKind, target: &str, how: &str) -> String {
    match kind {
        FaultKind::Pause => format!("{target} is stopped (SIGSTOP)"),
        FaultKind::Resume => format!("{target} is continued (SIGCONT)"),
        FaultKind::Freeze => format!("{target} is frozen"),
        FaultKind::Thaw => format!("{target} is thawed"),
        FaultKind::Kill => format!("{target} is killed (SIGKILL)"),
        FaultKind::Restart => format!("{target} is restarted and comes back with its data"),
        FaultKind::RestartEmpty => format!("{target} is restarted and comes back empty"),
        FaultKind::Promote => format!("{target} becomes the primary"),
        FaultKind::Partition => format!("the network is split: {target}"),
        FaultKind::Isolate => format!("{target} is cut off from everybody"),
        FaultKind::Refuse => format!("connections are refused: {target}"),
        FaultKind::Blackhole => format!("everything sent is lost: {target}"),
        FaultKind::OneWay => format!("what is sent one way is lost: {target}"),
        FaultKind::Stall => format!("what is sent is held back: {target}"),
        FaultKind::Reset => format!("connections are reset: {target}"),
        FaultKind::Latency => format!("what is sent arrives late: {target}"),
        FaultKind::Bandwidth => format!("what is sent arrives slowly: {target}"),
        FaultKind::Toxic => format!("a toxic is put on {target}"),
        FaultKind::Disconnect => format!("{target} is taken off the network"),
        FaultKind::Drop => format!("every packet of {target} is dropped"),
        FaultKind::Loss => format!("packets of {target} get lost"),
        FaultKind::Skew => jumps(target, how),
        FaultKind::Drift => drifts(target, how),
    }
}

/// The end of a fault that stood.
pub(super) fn ends(kind: FaultKind, target: &str) -> String {
    match kind {
        FaultKind::Kill => format!("{target} is started again"),
        FaultKind::Disconnect => format!("{target} is put on the network again"),
        FaultKind::Skew | FaultKind::Drift => format!("the clock of {target} is put right"),
        FaultKind::Stall => format!("what was held back arrives: {target}"),
        _ => format!("the {kind} ends: {target}"),
    }
}

/// From `realtime by +60000 ms`.
fn jumps(target: &str, how: &str) -> String {
    let ms = amount(how, " ms");
    let length = |ms: i64| format_duration(Duration::from_millis(ms.unsigned_abs()));
    match ms {
        Some(ms) if ms < 0 => format!("{target}'s clock is set back by {}", length(ms)),
        Some(ms) => format!("{target}'s clock jumps ahead by {}", length(ms)),
        None => format!("{target}'s clock is set off"),
    }
}

/// From `monotonic by -2000 ppm`.
fn drifts(target: &str, how: &str) -> String {
    match amount(how, " ppm") {
        Some(ppm) if ppm < 0 => format!("{target}'s clock runs {} ppm slow from here", -ppm),
        Some(ppm) => format!("{target}'s clock runs {ppm} ppm fast from here"),
        None => format!("{target}'s clock begins to drift"),
    }
}

fn amount(how: &str, unit: &str) -> Option<i64> {
    let (_, amount) = how.split_once(" by ")?;
    amount.strip_suffix(unit)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ClockName, Fault};

    #[test]
    fn a_clock_is_told_with_how_far_it_is_off() {
        let skew = |by_ms| Fault::Skew {
            node: "redlock-3".to_owned(),
            clock: ClockName::Realtime,
            by_ms,
        };
        let drift = |ppm| Fault::Drift {
            node: "redlock-3".to_owned(),
            clock: ClockName::Monotonic,
            ppm,
        };
        for (fault, words) in [
            (skew(60_000), "redlock-3's clock jumps ahead by 1m"),
            (skew(-1_500), "redlock-3's clock is set back by 1500ms"),
            (
                drift(2_000),
                "redlock-3's clock runs 2000 ppm fast from here",
            ),
            (
                drift(-2_000),
                "redlock-3's clock runs 2000 ppm slow from here",
            ),
        ] {
            let told = begins(fault.kind(), &fault.target(), &fault.parameters());
            assert_eq!(told, words);
        }
        let unknown = begins(FaultKind::Skew, "a", "");
        assert_eq!(unknown, "a's clock is set off");
    }
}
