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
    // A case that was given up has no worker that could have finished.
    if record.gaps.is_empty() {
        doubts.extend(unfinished_workers(record));
    }
    doubts.extend(times_running_backwards(&record.history));
    doubts.extend(fault_doubts::doubts(&record.faults, &record.gaps));
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
    // A worker that was killed on purpose has nothing more to say.
    let lives = |worker: &&String| fault_doubts::killed_at_ns(&record.faults, worker).is_none();
    let workers = record.workers.iter().filter(lives);
    let unfinished = workers.filter_map(|worker| {
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
