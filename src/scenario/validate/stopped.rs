//! Steps on a node that an earlier step of the same list has certainly stopped.

use super::Check;
use super::times::taken_by;
use crate::model::FaultKind;
use crate::scenario::Span;
use crate::scenario::draft::{DraftAction, DraftEntry, DraftFault, DraftStep};
use crate::yaml::Report;
use std::collections::BTreeMap;

/// Nodes that stand still or are gone, and why.
type Stopped<'a> = BTreeMap<&'a str, Why>;

struct Why {
    kind: FaultKind,
    /// By a step of this entry, and not by the event that it begins at.
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
            // Meanwhile others may have let it go on.
            stopped.retain(|node, why| why.own && !undone_elsewhere(check, entry, node));
        }
    }
}

/// An entry that begins at once when a node was stopped finds it so.
fn by_its_event(entry: &DraftEntry) -> Stopped<'_> {
    let at_once = entry.delay() == Span::default();
    let Some(when) = entry.when.as_ref().filter(|_| at_once) else {
        return Stopped::new();
    };
    let stops = [FaultKind::Pause, FaultKind::Freeze, FaultKind::Kill].into_iter();
    let mut stops = stops.filter(|kind| kind.node_event() == Some(&when.value.event));
    let why = stops.next().map(|kind| Why { kind, own: false });
    let source = when.value.source.as_str();
    why.map(|why| (source, why)).into_iter().collect()
}

fn undone_elsewhere(check: &Check<'_>, entry: &DraftEntry, node: &str) -> bool {
    let others = check.draft.timeline.iter();
    let others = others.filter(|other| other.place != entry.place);
    let mut steps = others.flat_map(DraftEntry::all_steps);
    steps.any(|step| match &step.action {
        DraftAction::Resume(target) | DraftAction::Thaw(target) => target.value == node,
        DraftAction::Heal(name) => entry.is_called(&name.value),
        DraftAction::Fault(fault) => {
            fault.kind.node_event() == FaultKind::Restart.node_event() && fault.may_befall(node)
        }
        DraftAction::Wait(_) | DraftAction::Await(_) | DraftAction::Together(_) => false,
    })
}

fn needs_a_running_target(fault: &DraftFault, stopped: &Stopped<'_>, report: &mut Report) {
    let asks_it = matches!(
        fault.kind,
        FaultKind::Skew | FaultKind::Drift | FaultKind::Pause | FaultKind::Freeze | FaultKind::Kill
    );
    let [node] = fault.nodes() else { return };
    let Some(stop) = stopped.get(node.value.as_str()).filter(|_| asks_it) else {
        return;
    };
    // A process that stands still can be killed.
    if fault.kind == FaultKind::Kill && stop.kind != FaultKind::Kill {
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
    match &step.action {
        DraftAction::Fault(fault) => match (fault.kind, fault.nodes()) {
            (FaultKind::Pause | FaultKind::Freeze | FaultKind::Kill, [node]) if fault.stays() => {
                let kind = fault.kind;
                stopped.insert(&node.value, Why { kind, own: true });
            }
            (FaultKind::Restart | FaultKind::RestartEmpty, nodes) => {
                for node in nodes {
                    stopped.remove(node.value.as_str());
                }
            }
            _ => {}
        },
        DraftAction::Resume(node) | DraftAction::Thaw(node) => {
            stopped.remove(node.value.as_str());
        }
        DraftAction::Heal(name) if entry.is_called(&name.value) => stopped.clear(),
        DraftAction::Heal(name) => {
            let timeline = &check.draft.timeline;
            let healed = timeline.iter().find(|entry| entry.is_called(&name.value));
            for step in healed.map(DraftEntry::all_steps).unwrap_or_default() {
                for node in step.fault().map_or(&[][..], DraftFault::nodes) {
                    stopped.remove(node.value.as_str());
                }
            }
        }
        DraftAction::Wait(_) | DraftAction::Await(_) | DraftAction::Together(_) => {}
    }
}
