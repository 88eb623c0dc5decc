//! Checks that events exist, that their sources exist, and that they can come as often as asked.

use super::events::{BEGAN, ENTRY_EVENTS, node_events};
use super::*;
use crate::scenario::draft::DraftExpectations;
use crate::scenario::trigger::STARTED;

const RESOURCE_EVENTS: [&str; 2] = ["write_accepted", "write_rejected"];

/// Checks all triggers; returns the places of those that it has complained about.
pub fn check(check: &Check<'_>, report: &mut Report) -> Vec<Place> {
    let starts = check.draft.workers.iter();
    let starts = starts.filter_map(|worker| worker.start.as_ref());
    let entries = check.draft.timeline.iter();
    let entries = entries.flat_map(|entry| entry.when.iter().chain(entry.awaited()));
    let mut wrong = Vec::new();
    for at in starts.chain(entries) {
        let before = report.complaints();
        trigger(check, at, report);
        if report.complaints() > before {
            wrong.push(at.place);
        }
    }
    wrong
}

/// Checks that the record will have the events of the order that a case expects.
pub fn check_order(check: &Check<'_>, expected: &DraftExpectations, report: &mut Report) {
    for at in &expected.order {
        let source = &at.value.source;
        let mut entries = check.draft.timeline.iter();
        if source == SCENARIO || entries.any(|entry| entry.is_called(source)) {
            let message = format!(
                "`{}` is not in the record, so no order can be judged by it; name events of workers, of nodes or of the resource",
                at.value
            );
            report.add(at.place, message);
        } else {
            trigger(check, at, report);
        }
    }
}

/// Checks one event that a worker or an entry waits for, or a case expects.
pub fn trigger(check: &Check<'_>, at: &At<Trigger>, report: &mut Report) {
    let Trigger { source, event, .. } = &at.value;
    let mut entries = check.draft.timeline.iter();
    let entry = entries.find(|entry| entry.is_called(source));
    let who = check.who(source);
    let (what, known) = if source == SCENARIO {
        ("event of the scenario", vec![STARTED])
    } else if let Some(entry) = entry {
        if ENTRY_EVENTS.contains(&event.as_str()) {
            entry_event(check, entry, at, report);
        }
        ("event of an entry", ENTRY_EVENTS.to_vec())
    } else if let Some(worker) = check.worker(source) {
        worker_event(check, worker, at, report);
        let own = EventKind::NAMES.iter().copied();
        ("event of a worker", own.chain(node_events()).collect())
    } else if source == RESOURCE {
        let own = RESOURCE_EVENTS.into_iter();
        ("event of the resource", own.chain(node_events()).collect())
    } else if who == Some(Role::Unasked) {
        return;
    } else if who.is_some() {
        ("event of a service", node_events())
    } else {
        unknown_source(check, at, report);
        return;
    };
    if !known.contains(&event.as_str()) {
        report.unknown(at.place, what, event, known);
        return;
    }
    let one_time = source == SCENARIO && at.value.occurrence > 1;
    if one_time {
        never(at, "a scenario starts once", report);
    }
    if node_events().contains(&event.as_str()) {
        node_event(check, at, report);
    }
}

fn unknown_source(check: &Check<'_>, at: &At<Trigger>, report: &mut Report) {
    let entries = check.draft.timeline.iter();
    let entries = entries.filter_map(|entry| entry.name.as_ref());
    let entries = entries.map(|name| name.value.as_str());
    let mut known = check.node_names();
    known.extend(entries.chain([RESOURCE, SCENARIO]));
    let source = &at.value.source;
    report.unknown(
        at.place,
        "worker, service or entry",
        source,
        once_each(known),
    );
}

fn entry_event(check: &Check<'_>, entry: &DraftEntry, at: &At<Trigger>, report: &mut Report) {
    let most = match at.value.event.as_str() {
        BEGAN => 1,
        _ => check.times_ended(entry),
    };
    let whole = check.draft.timeline_is_whole();
    if most == 0 && whole {
        let why = format!(
            "something of it stays; give that a `for`, or add a `heal: {}`",
            at.value.source
        );
        never(at, &why, report);
    } else if at.value.occurrence > most && whole {
        never(at, &format!("it comes at most {most} time(s)"), report);
    }
}

/// Checks an event that a worker itself reports.
fn worker_event(check: &Check<'_>, worker: &DraftWorker, at: &At<Trigger>, report: &mut Report) {
    let name = &worker.name.value;
    let rounds = check.rounds(worker);
    let most = match at.value.event.as_str() {
        "ready" | "done" => 1,
        "reentered" | "left" if worker.nested() < 2 => {
            let why = format!("worker `{name}` has one hold; give it `nested: 2`");
            never(at, &why, report);
            return;
        }
        "reentered" | "left" => rounds.saturating_mul(worker.nested() - 1),
        "at_gate" if worker.gate.is_none() => {
            let why =
                format!("worker `{name}` has no gate; give it one, such as `gate: before_write`");
            never(at, &why, report);
            return;
        }
        "at_gate" => {
            let gates = worker.gate.as_ref().map_or(0, Vec::len).max(1);
            rounds.saturating_mul(gates as u32)
        }
        "acquired" | "acquiring" | "writing" | "write_accepted" | "write_rejected" => rounds,
        _ => return,
    };
    if at.value.occurrence > most {
        let why = match rounds == u32::MAX {
            true => format!("it comes at most {most} time(s)"),
            false => format!("with {rounds} round(s) it comes at most {most} time(s)"),
        };
        never(at, &why, report);
    }
}

/// Checks an event that only a fault of the timeline can bring about.
fn node_event(check: &Check<'_>, at: &At<Trigger>, report: &mut Report) {
    if !check.draft.timeline_is_whole() {
        return;
    }
    let Trigger { source, event, .. } = &at.value;
    let told = |entry: &DraftEntry| check.times_told(entry, source, event);
    let told = check.draft.timeline.iter().map(told);
    let most = told.fold(0, u32::saturating_add);
    if most == 0 {
        let kinds = FaultKind::ALL.into_iter();
        let kinds = kinds.filter(|kind| kind.node_event() == Some(event));
        let steps: Vec<String> = kinds.map(|kind| format!("`{kind}: {source}`")).collect();
        let why = format!("no step of the timeline says {}", steps.join(" or "));
        never(at, &why, report);
    } else if at.value.occurrence > most {
        never(at, &format!("it comes at most {most} time(s)"), report);
    }
}

fn never(at: &At<Trigger>, why: &str, report: &mut Report) {
    report.add(at.place, format!("`{}` never comes: {why}", at.value));
}
