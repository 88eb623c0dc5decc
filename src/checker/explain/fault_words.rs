//! Faults as a person would tell them.

use crate::model::{FaultKind, FaultRow, format_duration};
use std::time::Duration;

/// `request` is the row that asked for it.
pub(super) fn begins(kind: FaultKind, target: &str, request: Option<&FaultRow>) -> String {
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
        FaultKind::Skew => jumps(target, request),
        FaultKind::Drift => drifts(target, request),
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

fn jumps(target: &str, request: Option<&FaultRow>) -> String {
    let ms = request.and_then(|row| row.by_ms.or_else(|| amount(&row.detail, " ms")));
    let length = |ms: i64| format_duration(Duration::from_millis(ms.unsigned_abs()));
    match ms {
        Some(ms) if ms < 0 => format!("{target}'s clock is set back by {}", length(ms)),
        Some(ms) => format!("{target}'s clock jumps ahead by {}", length(ms)),
        None => format!("{target}'s clock is set off"),
    }
}

fn drifts(target: &str, request: Option<&FaultRow>) -> String {
    let ppm = request.and_then(|row| row.ppm.or_else(|| amount(&row.detail, " ppm")));
    match ppm {
        Some(ppm) if ppm < 0 => format!("{target}'s clock runs {} ppm slow from here", -ppm),
        Some(ppm) => format!("{target}'s clock runs {ppm} ppm fast from here"),
        None => format!("{target}'s clock begins to drift"),
    }
}

/// Rows of earlier programs have it in their words alone: `realtime by +60000 ms`.
fn amount(how: &str, unit: &str) -> Option<i64> {
    let (_, amount) = how.split_once(" by ")?;
    amount.strip_suffix(unit)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(json: serde_json::Value) -> FaultRow {
        let mut row = serde_json::json!({
            "at_ns": 1, "id": 1, "fault": "skew", "target": "redis-3", "stage": "requested"
        });
        let fields = row.as_object_mut().expect("an object");
        fields.extend(json.as_object().cloned().expect("an object"));
        serde_json::from_value(row).expect("a row")
    }

    #[test]
    fn a_clock_is_described_with_how_far_it_is_off() {
        let json = |text: &str| serde_json::from_str(text).expect("JSON");
        for (kind, fields, words) in [
            (
                FaultKind::Skew,
                r#"{"by_ms":60000}"#,
                "redis-3's clock jumps ahead by 1m",
            ),
            (
                FaultKind::Skew,
                r#"{"by_ms":-1500}"#,
                "redis-3's clock is set back by 1500ms",
            ),
            (
                FaultKind::Skew,
                r#"{"detail":"realtime by +60000 ms"}"#,
                "redis-3's clock jumps ahead by 1m",
            ),
            (
                FaultKind::Drift,
                r#"{"ppm":2000}"#,
                "redis-3's clock runs 2000 ppm fast from here",
            ),
            (
                FaultKind::Drift,
                r#"{"detail":"monotonic by -2000 ppm"}"#,
                "redis-3's clock runs 2000 ppm slow from here",
            ),
            (FaultKind::Skew, "{}", "redis-3's clock is set off"),
        ] {
            let row = request(json(fields));
            assert_eq!(begins(kind, "redis-3", Some(&row)), words);
        }
    }
}
