//! Steps on a node that an earlier step of the same list has certainly stopped.

use super::times::taken_by;
use super::*;
use std::collections::BTreeMap;

/// The nodes that are stopped or gone, and why.
type Stopped<'a> = BTreeMap<&'a str, Why>;

struct Why {
    kind: FaultKind,
    /// It was stopped by a step of this entry, and not by the event that the entry begins at.
    own: bool,
}

pub fn check(check: &Check<'_>, entry: &DraftEntry, report: &mut Report) {
    let mut stopped = by_its_event(entry);
    for step in &entry.steps {
        for inner in step.with_inner() {
            if let Some(fault) = inner.fault() {
                needs_a_running_target(fault, &stopped, report);
            }
        }
        for inner in step.with_inner() {
            note(check, entry, inner, &mut stopped);
        }
        if taken_by(step) != Span::default() || step.waits_for_an_event() {
            // Meanwhile other entries may have let it go on.
            stopped.retain(|node, why| why.own && !undone_elsewhere(check, entry, node));
        }
    }
}

/// Returns the node that the entry finds stopped: it begins at once when that node was stopped.
fn by_its_event(entry: &DraftEntry) -> Stopped<'_> {
    let at_once = entry.delay() == Span::default();
    let Some(when) = entry.when.as_ref().filter(|_| at_once) else {
        return Stopped::new();
    };
    let stops = FaultKind::ALL.into_iter().filter(|kind| stops(*kind));
    let mut stops = stops.filter(|kind| kind.node_event() == Some(&when.value.event));
    let why = stops.next().map(|kind| Why { kind, own: false });
    let source = when.value.source.as_str();
    why.map(|why| (source, why)).into_iter().collect()
}

/// Returns whether the target is stopped or gone afterwards.
fn stops(kind: FaultKind) -> bool {
    matches!(kind.class(), FaultClass::Stop | FaultClass::Kill)
}

fn undone_elsewhere(check: &Check<'_>, entry: &DraftEntry, node: &str) -> bool {
    let others = check.draft.timeline.iter();
    let others = others.filter(|other| other.place != entry.place);
    let mut steps = others.flat_map(DraftEntry::all_steps);
    steps.any(|step| match step {
        Step::End(end) => end.node.value == node,
        Step::Heal { entry: name } => entry.is_called(&name.value),
        Step::Inject { fault, .. } => {
            fault.kind.class() == FaultClass::Restart && fault.may_affect(node)
        }
        Step::Wait { .. } | Step::Await { .. } | Step::Together { .. } => false,
    })
}

fn needs_a_running_target(fault: &DraftFault, stopped: &Stopped<'_>, report: &mut Report) {
    let asks_it = stops(fault.kind) || fault.kind.class() == FaultClass::Clock;
    let [node] = fault.nodes() else { return };
    let Some(stop) = stopped.get(node.value.as_str()).filter(|_| asks_it) else {
        return;
    };
    // A stopped process can be killed.
    let kills = |kind: FaultKind| kind.class() == FaultClass::Kill;
    if kills(fault.kind) && !kills(stop.kind) {
        return;
    }
    let event = stop.kind.node_event().unwrap_or_default();
    let message = format!(
        "`{}` is {event} here, and a {} needs it running; put this before, or let it go on first",
        node.value, fault.kind
    );
    report.add(node.place, message);
}

fn note<'a>(check: &Check<'_>, entry: &DraftEntry, step: &'a DraftStep, stopped: &mut Stopped<'a>) {
    match step {
        Step::Inject { fault, .. } => {
            if let [node] = fault.nodes()
                && stops(fault.kind)
                && fault.stays()
            {
                let kind = fault.kind;
                stopped.insert(&node.value, Why { kind, own: true });
            } else if fault.kind.class() == FaultClass::Restart {
                for node in fault.nodes() {
                    stopped.remove(node.value.as_str());
                }
            }
        }
        Step::End(end) => {
            stopped.remove(end.node.value.as_str());
        }
        Step::Heal { entry: name } if entry.is_called(&name.value) => stopped.clear(),
        Step::Heal { entry: name } => {
            let timeline = &check.draft.timeline;
            let healed = timeline.iter().find(|entry| entry.is_called(&name.value));
            for step in healed.map(DraftEntry::all_steps).unwrap_or_default() {
                for node in step.fault().map_or(&[][..], DraftFault::nodes) {
                    stopped.remove(node.value.as_str());
                }
            }
        }
        Step::Wait { .. } | Step::Await { .. } | Step::Together { .. } => {}
    }
}
