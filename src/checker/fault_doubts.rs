use crate::model::{FaultKind, FaultRow, FaultStage};
use std::collections::BTreeMap;

/// Faults that were not seen to bite, or did not bite for long enough: what
/// came out of such a case proves nothing about the fault. What the harness has
/// said about it (it gives a case up over that) is not said again.
pub(super) fn doubts(faults: &[FaultRow], gaps: &[String]) -> Vec<String> {
    let mut by_id: BTreeMap<u32, Vec<&FaultRow>> = BTreeMap::new();
    for row in faults {
        by_id.entry(row.id).or_default().push(row);
    }
    let is_said = |row: &&FaultRow| {
        let named = format!("{} of {}", row.fault, row.target);
        let mut gaps = gaps.iter();
        gaps.any(|gap| gap.contains(&named) && gap.ends_with(&row.detail))
    };
    let mut doubts = Vec::new();
    for rows in by_id.values() {
        let failed = stage(rows, FaultStage::Unproven);
        let Some(observed) = stage(rows, FaultStage::Observed) else {
            if !failed.as_ref().is_some_and(is_said) {
                doubts.push(unproven(rows));
            }
            continue;
        };
        doubts.extend(too_short(rows, observed, faults));
        if stands_still(observed.fault).is_some() {
            doubts.extend(stage(rows, FaultStage::Healed).map(only_healed));
        }
        doubts.extend(failed.filter(|row| !is_said(row)).map(not_seen_to_end));
    }
    doubts
}

/// When a worker was seen to have been killed.
pub(super) fn killed_at_ns(faults: &[FaultRow], worker: &str) -> Option<u64> {
    observed_kill(faults, worker).map(|row| row.at_ns)
}

/// When the signal was sent of which a worker was seen to have died.
pub(super) fn kill_sent_at_ns(faults: &[FaultRow], worker: &str) -> Option<u64> {
    let observed = observed_kill(faults, worker)?;
    let mut asked = faults.iter();
    let asked = asked.find(|row| row.id == observed.id && row.stage == FaultStage::Requested);
    Some(asked.unwrap_or(observed).at_ns)
}

fn observed_kill<'a>(faults: &'a [FaultRow], worker: &str) -> Option<&'a FaultRow> {
    faults.iter().find(|row| {
        row.fault == FaultKind::Kill && row.stage == FaultStage::Observed && row.target == worker
    })
}

fn stage<'a>(rows: &[&'a FaultRow], stage: FaultStage) -> Option<&'a FaultRow> {
    rows.iter().copied().find(|row| row.stage == stage)
}

fn unproven(rows: &[&FaultRow]) -> String {
    let row = rows[0];
    let said = stage(rows, FaultStage::Unproven).map(|row| row.detail.as_str());
    let why = said.filter(|why| !why.is_empty());
    let why = why.unwrap_or("nothing was seen");
    format!(
        "{} of {} (fault {}) was asked for and not proven: {why}",
        row.fault, row.target, row.id
    )
}

/// The shortest that it can have been: from the moment in which the target was
/// seen standing still to the moment in which somebody asked it to go on.
fn too_short(rows: &[&FaultRow], observed: &FaultRow, faults: &[FaultRow]) -> Option<String> {
    let wanted_ms = rows.iter().find_map(|row| row.longer_than_ms)?;
    let about = format!(
        "{} of {} (fault {})",
        observed.fault, observed.target, observed.id
    );
    let end_ns = faults
        .iter()
        .filter(|row| row.target == observed.target && row.at_ns >= observed.at_ns)
        .filter(|row| ends(row, observed.fault))
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

fn ends(row: &FaultRow, fault: FaultKind) -> bool {
    match row.stage {
        FaultStage::Healed | FaultStage::Ended => row.fault == fault,
        FaultStage::Unproven | FaultStage::Ending => false,
        _ => Some(row.fault) == stands_still(fault),
    }
}

/// What ends a fault that makes its target stand still.
fn stands_still(fault: FaultKind) -> Option<FaultKind> {
    match fault {
        FaultKind::Pause => Some(FaultKind::Resume),
        FaultKind::Freeze => Some(FaultKind::Thaw),
        _ => None,
    }
}

/// It bit, and may have stayed: what came after is not what was asked for.
fn not_seen_to_end(row: &FaultRow) -> String {
    format!(
        "{} of {} (fault {}) was not seen to end: {}",
        row.fault, row.target, row.id, row.detail
    )
}

fn only_healed(row: &FaultRow) -> String {
    format!(
        "{} of {} (fault {}) was ended only by the healing after the case, not by the timeline",
        row.fault, row.target, row.id
    )
}
