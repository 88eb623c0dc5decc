use crate::model::trigger::RESOURCE;
use crate::model::{CaseRecord, EventKind, FaultKind, FaultRow, FaultStage, Gate, RowOutcome};
use crate::model::{Event, Trigger};
use std::collections::HashMap;

/// Where an order is not kept, by the first pair that does not keep it.
pub(super) enum Broken<'a> {
    NeverCame(&'a Trigger),
    TooEarly {
        event: &'a Trigger,
        before: &'a Trigger,
        by_ns: u64,
    },
}

/// All clocks of a record are one clock, so its times compare. Events of one
/// moment are in order.
pub(super) fn broken<'a>(record: &CaseRecord, order: &'a [Trigger]) -> Option<Broken<'a>> {
    let mut previous: Option<(&Trigger, u64)> = None;
    for event in order {
        let Some(at_ns) = moment_ns(record, event) else {
            return Some(Broken::NeverCame(event));
        };
        if let Some((before, before_ns)) = previous
            && at_ns < before_ns
        {
            return Some(Broken::TooEarly {
                event,
                before,
                by_ns: before_ns - at_ns,
            });
        }
        previous = Some((event, at_ns));
    }
    None
}

/// When an event came, for the time that its trigger counts.
fn moment_ns(record: &CaseRecord, trigger: &Trigger) -> Option<u64> {
    let name = trigger.event.as_str();
    let told = record.history.iter();
    let told = told.filter(|event| event.worker == trigger.source && is_told(event, name));
    let told = told.map(|event| event.at_ns);
    let decided = record.log.rows.iter().filter(|row| {
        let event = match row.outcome {
            RowOutcome::Accepted => "write_accepted",
            RowOutcome::Rejected => "write_rejected",
            RowOutcome::Duplicate => return false,
        };
        trigger.source == RESOURCE && event == name
    });
    let decided = decided.map(|row| row.at_ns);
    let befell = record.faults.iter();
    let befell = befell.filter(|row| {
        row.target == trigger.source || row.alias.as_deref() == Some(&trigger.source)
    });
    let mut firsts: HashMap<(u32, FaultStage), u64> = HashMap::new();
    for row in &record.faults {
        firsts.entry((row.id, row.stage)).or_insert(row.at_ns);
    }
    let befell = befell.filter_map(|row| befell_ns(&firsts, row, name));
    let mut moments: Vec<u64> = told.chain(decided).chain(befell).collect();
    moments.sort_unstable();
    let nth = usize::try_from(trigger.occurrence).ok()?.checked_sub(1)?;
    moments.get(nth).copied()
}

/// The harness's own gate is no event of the scenario's.
fn is_told(event: &Event, name: &str) -> bool {
    let at_start = matches!(event.kind, EventKind::AtGate { gate, .. } if gate == Gate::Start);
    event.kind.name() == name && !at_start
}

/// What holds its target up counts from when that was seen. What lets it go on
/// counts from when it was asked for: the target may have acted before anybody
/// saw that it is back.
fn befell_ns(firsts: &HashMap<(u32, FaultStage), u64>, row: &FaultRow, name: &str) -> Option<u64> {
    let began = |stage: FaultStage| *firsts.get(&(row.id, stage)).unwrap_or(&row.at_ns);
    match (row.fault, row.stage) {
        (kind, FaultStage::Observed) if kind.node_event() == Some(name) => match kind.stands() {
            true => Some(row.at_ns),
            false => Some(began(FaultStage::Requested)),
        },
        // Other faults that end with an event are ended by an action of its own.
        (FaultKind::Kill, FaultStage::Ended) if FaultKind::Kill.end_event() == Some(name) => {
            Some(began(FaultStage::Ending))
        }
        _ => None,
    }
}
