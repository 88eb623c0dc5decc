use super::*;
use crate::model::trigger::RESOURCE;

/// The first pair of events that breaks an order.
pub(super) enum Broken<'a> {
    NeverCame(&'a Trigger),
    TooEarly {
        event: &'a Trigger,
        before: &'a Trigger,
        by_ns: u64,
    },
}

/// Returns the first break of an order. All times of a record are from one clock, so they
/// can be compared. Events of the same moment are in order.
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

/// Returns when an event came, for the occurrence that its trigger names.
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

/// Returns whether a worker reported this event. The harness's own gate is not an event
/// of the scenario.
fn is_told(event: &Event, name: &str) -> bool {
    let at_start = matches!(event.kind, EventKind::AtGate { gate, .. } if gate == Gate::Start);
    event.kind.name() == name && !at_start
}

/// Returns the time of a fault event. A fault that holds up its target counts from its
/// observation. One that lets the target go on counts from its request: the target may
/// have acted before anybody saw that it is back.
fn befell_ns(firsts: &HashMap<(u32, FaultStage), u64>, row: &FaultRow, name: &str) -> Option<u64> {
    let began = |stage: FaultStage| *firsts.get(&(row.id, stage)).unwrap_or(&row.at_ns);
    match (row.fault, row.stage) {
        (kind, FaultStage::Observed) if kind.node_event() == Some(name) => match kind.lasts() {
            true => Some(row.at_ns),
            false => Some(began(FaultStage::Requested)),
        },
        // Other faults that end with an event are ended by a separate action.
        (FaultKind::Kill, FaultStage::Ended) if FaultKind::Kill.end_event() == Some(name) => {
            Some(began(FaultStage::Ending))
        }
        _ => None,
    }
}
