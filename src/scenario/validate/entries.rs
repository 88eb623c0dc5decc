//! Checks each entry of the timeline, step by step.

use super::*;
use crate::faults::{self, Candidate};

pub fn check(check: &Check<'_>, report: &mut Report) {
    for entry in &check.draft.timeline {
        for step in entry.all_steps() {
            match step {
                Step::Inject { fault, lasting } => {
                    on_nodes(check, fault, report);
                    links::check(check, fault, report);
                    pauses::check(check, entry, fault, lasting.as_ref(), report);
                    begins_again(entry, fault, report);
                }
                Step::End(end) => pauses::check_end(check, entry, end, report),
                Step::Heal { entry } => heals(check, entry, report),
                Step::Wait { .. } | Step::Await { .. } | Step::Together { .. } => {}
            }
        }
        stopped::check(check, entry, report);
    }
}

/// Checks that the healed entry exists and has a fault that lasts.
fn heals(check: &Check<'_>, name: &At<String>, report: &mut Report) {
    let entries = &check.draft.timeline;
    let Some(entry) = entries.iter().find(|entry| entry.is_called(&name.value)) else {
        let known = entries.iter().filter_map(|entry| entry.name.as_ref());
        let known = known.map(|name| name.value.as_str());
        report.unknown(name.place, "entry", &name.value, known);
        return;
    };
    let lasts = |step: &&DraftStep| step.fault().is_some_and(|fault| fault.kind.lasts());
    if entry.is_whole && !entry.all_steps().iter().any(lasts) {
        let message = format!(
            "nothing that `{}` does stands, so there is nothing to heal",
            name.value
        );
        report.add(name.place, message);
    }
}

/// Complains if `repeat` would inject a fault a second time while it is still active.
fn begins_again(entry: &DraftEntry, fault: &DraftFault, report: &mut Report) {
    if !fault.stays() {
        return;
    }
    let undoes = |other: &&DraftStep| match other {
        Step::End(end) => fault.may_affect(&end.node.value),
        Step::Heal { entry: name } => entry.is_called(&name.value),
        Step::Inject { fault: other, .. } => {
            let ends_it = fault.kind.end_event();
            ends_it.is_some()
                && other.kind.node_event() == ends_it
                && other
                    .nodes()
                    .iter()
                    .any(|node| fault.may_affect(&node.value))
        }
        Step::Wait { .. } | Step::Await { .. } | Step::Together { .. } => false,
    };
    if entry.repeats() > 1 && entry.is_whole && !entry.all_steps().iter().any(undoes) {
        let message = format!(
            "with `repeat` this {} would begin again while it stands; give it a `for`, or undo it among these steps",
            fault.kind
        );
        report.add(fault.place, message);
    }
}

/// Checks that each node can have the fault.
fn on_nodes(check: &Check<'_>, fault: &DraftFault, report: &mut Report) {
    for node in fault.nodes() {
        let Some(role) = check.node(node, report) else {
            continue;
        };
        let candidate = Candidate {
            name: &node.value,
            role,
            has_end: fault.has_end,
            replicas: check.facts.map(|facts| &facts.replicas),
        };
        let refused = (faults::form(fault.kind).refuses)(&candidate);
        if let Some(why) = refused.or_else(|| check.protects(fault, &node.value, role)) {
            report.add(node.place, why);
        }
    }
}
