//! Each entry of the timeline, step by step.

use super::{Check, faults, links, pauses, stopped};
use crate::scenario::draft::{DraftAction, DraftEntry, DraftStep};
use crate::yaml::{At, Report};

pub fn check(check: &Check<'_>, report: &mut Report) {
    for entry in &check.draft.timeline {
        for step in entry.all_steps() {
            match &step.action {
                DraftAction::Fault(fault) => {
                    faults::check(check, fault, report);
                    links::check(check, fault, report);
                    pauses::check(check, entry, step, fault, report);
                    begins_again(entry, step, report);
                }
                DraftAction::Resume(node) | DraftAction::Thaw(node) => {
                    pauses::check_undo(check, entry, step, node, report);
                }
                DraftAction::Heal(name) => heals(check, name, report),
                DraftAction::Wait(_) | DraftAction::Await(_) | DraftAction::Together(_) => {}
            }
        }
        stopped::check(check, entry, report);
    }
}

/// Whatever is healed has to be there, and to stand.
fn heals(check: &Check<'_>, name: &At<String>, report: &mut Report) {
    let entries = &check.draft.timeline;
    let Some(entry) = entries.iter().find(|entry| entry.is_called(&name.value)) else {
        let known = entries.iter().filter_map(|entry| entry.name.as_ref());
        let known = known.map(|name| name.value.as_str());
        report.unknown(name.place, "entry", &name.value, known);
        return;
    };
    let stands = |step: &&DraftStep| step.fault().is_some_and(|fault| fault.kind.stands());
    if entry.is_whole && !entry.all_steps().iter().any(stands) {
        let message = format!(
            "nothing that `{}` does stands, so there is nothing to heal",
            name.value
        );
        report.add(name.place, message);
    }
}

/// With `repeat`, what still stands would begin a second time.
fn begins_again(entry: &DraftEntry, step: &DraftStep, report: &mut Report) {
    let Some(fault) = step.fault().filter(|fault| fault.stays()) else {
        return;
    };
    let undoes = |other: &&DraftStep| match &other.action {
        DraftAction::Resume(node) | DraftAction::Thaw(node) => fault.may_befall(&node.value),
        DraftAction::Heal(name) => entry.is_called(&name.value),
        DraftAction::Fault(other) => {
            let ends_it = fault.kind.end_event();
            ends_it.is_some()
                && other.kind.node_event() == ends_it
                && other
                    .nodes()
                    .iter()
                    .any(|node| fault.may_befall(&node.value))
        }
        DraftAction::Wait(_) | DraftAction::Await(_) | DraftAction::Together(_) => false,
    };
    if entry.repeats() > 1 && entry.is_whole && !entry.all_steps().iter().any(undoes) {
        let message = format!(
            "with `repeat` this {} would begin again while it stands; give it a `for`, or undo it among these steps",
            fault.kind
        );
        report.add(step.place, message);
    }
}
