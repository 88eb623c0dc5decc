use super::fates;
use super::fault_doubts;
use super::positions::Positions;
use crate::model::{CaseRecord, Event, EventKind, LogRow};
use std::collections::HashMap;

/// Why the record does not support a clean answer, one sentence for each reason.
pub(super) fn doubts(record: &CaseRecord, positions: &Positions) -> Vec<String> {
    let mut doubts = record.gaps.clone();
    if !positions.whole() {
        doubts.extend(break_in_log(&record.log));
    }
    doubts.extend(unfinished_workers(record));
    doubts.extend(times_running_backwards(&record.history));
    doubts.extend(fault_doubts::doubts(&record.faults));
    doubts.extend(fates::doubts(record));
    doubts
}

/// One sentence is enough: after the first break no position can be relied on.
fn break_in_log(log: &[LogRow]) -> Option<String> {
    let (row, expected) = log
        .iter()
        .zip(1..)
        .find(|&(row, expected)| row.seq != expected)?;
    Some(format!(
        "the log is not whole: position {expected} should come next, but {} does",
        row.seq
    ))
}

fn unfinished_workers(record: &CaseRecord) -> Vec<String> {
    let mut last: HashMap<&str, &Event> = HashMap::new();
    for event in &record.history {
        last.insert(&event.worker, event);
    }
    let unfinished = record.workers.iter().filter_map(|worker| {
        let Some(event) = last.get(worker.as_str()) else {
            return Some(format!("worker {worker} never said anything"));
        };
        let is_done = matches!(event.kind, EventKind::Done { .. });
        let name = event.kind.name();
        (!is_done)
            .then(|| format!("worker {worker} never said done; the last thing it said was {name}"))
    });
    unfinished.collect()
}

/// A clock that runs backwards makes every hold of that worker questionable.
fn times_running_backwards(history: &[Event]) -> Vec<String> {
    let mut last: HashMap<&str, &Event> = HashMap::new();
    let mut backwards: Vec<&str> = Vec::new();
    let mut doubts = Vec::new();
    for event in history {
        let worker = event.worker.as_str();
        let Some(before) = last.insert(worker, event) else {
            continue;
        };
        if event.at_ns < before.at_ns && !backwards.contains(&worker) {
            backwards.push(worker);
            doubts.push(format!(
                "the times of worker {worker} run backwards: {} at {} ns comes after {} at {} ns",
                event.kind.name(),
                event.at_ns,
                before.kind.name(),
                before.at_ns,
            ));
        }
    }
    doubts
}
