//! Plots of a load, each a self-contained SVG.

mod contention;
mod memory;
mod order;
mod panel;
mod picture;
mod queue;
mod scale;
mod svg;

use crate::model::{ArrivalRow, ContendStep, KeyspaceRecord, LoadRecord, Name, RunRecord};
use picture::Picture;
use std::collections::BTreeMap;

/// File names and contents; none for a run without load. `arrivals` are those of
/// each case, by its name.
pub fn plots(run: &RunRecord, arrivals: &BTreeMap<Name, Vec<ArrivalRow>>) -> Vec<(String, String)> {
    let loads = run.cases.iter();
    let loads: Vec<(&str, &LoadRecord)> = loads
        .filter_map(|case| Some((case.name.as_str(), case.notes.load.as_ref()?)))
        .collect();
    let contended = loads.iter().filter(|(_, load)| !load.steps.is_empty());
    let contended: Vec<(&str, &[ContendStep])> = contended
        .map(|(case, load)| (*case, load.steps.as_slice()))
        .collect();
    let keyspaces: Vec<(&str, &KeyspaceRecord)> = loads
        .iter()
        .filter_map(|(case, load)| Some((*case, load.keyspace.as_ref()?)))
        .collect();
    let any = !contended.is_empty();
    let pictures: [(&str, Option<Picture>); 5] = [
        (
            "latency-vs-contenders.svg",
            any.then(|| contention::latency(&contended)),
        ),
        (
            "throughput-vs-contenders.svg",
            any.then(|| contention::throughput(&contended)),
        ),
        (
            "arrival-vs-acquisition.svg",
            order::order(&contended, arrivals),
        ),
        ("queue-over-time.svg", queue::queue(&contended)),
        ("memory-over-time.svg", memory::memory(&keyspaces)),
    ];
    let drawn = pictures.into_iter();
    let drawn = drawn.filter_map(|(name, picture)| Some((name.to_owned(), picture?.svg())));
    drawn.collect()
}

/// A case by its name; where contenders ask again only when they are done, no queue
/// can grow, and the curves of the two models are not to be compared.
fn named(case: &str, steps: &[ContendStep]) -> String {
    match steps.iter().any(|step| step.model == "closed") {
        true => format!("{case} (closed)"),
        false => case.to_owned(),
    }
}

#[cfg(test)]
mod tests;
