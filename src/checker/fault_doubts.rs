use crate::model::{FaultKind, FaultRow, FaultStage};
use std::collections::BTreeMap;

/// Faults that were not seen to bite, or did not bite for long enough: what
/// came out of such a case proves nothing about the fault.
pub(super) fn doubts(faults: &[FaultRow]) -> Vec<String> {
    let mut by_id: BTreeMap<u32, Vec<&FaultRow>> = BTreeMap::new();
    for row in faults {
        by_id.entry(row.id).or_default().push(row);
    }
    let mut doubts = Vec::new();
    for rows in by_id.values() {
        let Some(observed) = stage(rows, FaultStage::Observed) else {
            doubts.push(unproven(rows));
            continue;
        };
        if observed.fault == FaultKind::Pause {
            doubts.extend(too_short(rows, observed, faults));
            doubts.extend(stage(rows, FaultStage::Healed).map(only_healed));
        }
    }
    doubts
}

fn stage<'a>(rows: &[&'a FaultRow], stage: FaultStage) -> Option<&'a FaultRow> {
    rows.iter().copied().find(|row| row.stage == stage)
}

fn unproven(rows: &[&FaultRow]) -> String {
    let row = stage(rows, FaultStage::Unproven).unwrap_or(rows[0]);
    let why = if row.detail.is_empty() {
        "nothing was seen"
    } else {
        row.detail.as_str()
    };
    format!(
        "{} of {} (fault {}) was asked for and not proven: {why}",
        row.fault, row.target, row.id
    )
}

/// The shortest that it can have been: from the moment in which the target was
/// seen standing still to the moment in which somebody asked it to go on.
fn too_short(rows: &[&FaultRow], observed: &FaultRow, faults: &[FaultRow]) -> Option<String> {
    let wanted_ms = rows.iter().find_map(|row| row.longer_than_ms)?;
    let about = format!("pause of {} (fault {})", observed.target, observed.id);
    let end_ns = faults
        .iter()
        .filter(|row| row.target == observed.target && row.at_ns >= observed.at_ns)
        .filter(|row| ends_a_pause(row))
        .map(|row| row.at_ns)
        .min();
    let Some(end_ns) = end_ns else {
        return Some(format!(
            "{about} has no end in the record, so it is unknown whether it lasted longer than {wanted_ms} ms"
        ));
    };
    let lasted_ns = end_ns - observed.at_ns;
    let wanted_ns = u128::from(wanted_ms) * 1_000_000;
    (u128::from(lasted_ns) <= wanted_ns).then(|| {
        let lasted_ms = lasted_ns / 1_000_000;
        format!("{about} lasted {lasted_ms} ms and had to last longer than {wanted_ms} ms")
    })
}

fn ends_a_pause(row: &FaultRow) -> bool {
    match row.fault {
        FaultKind::Pause => row.stage == FaultStage::Healed,
        FaultKind::Resume => row.stage != FaultStage::Unproven,
    }
}

fn only_healed(row: &FaultRow) -> String {
    format!(
        "{} of {} (fault {}) was ended only by the healing after the case, not by the timeline",
        row.fault, row.target, row.id
    )
}
