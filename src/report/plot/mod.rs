//! Plots of a load, each a self-contained SVG.

mod contention;
mod memory;
mod order;
mod panel;
mod picture;
mod queue;
mod scale;
mod svg;

use super::*;
use panel::{Axis, LETTER, Panel, Place, Series, Stroke, draw_stroke};
use picture::Picture;
use scale::{Scale, tick_label};

/// Returns file names and contents; none for a run without load. `arrivals` has those of each
/// case, by its name.
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
    let latency = any.then(|| contention::latency(&contended));
    let throughput = any.then(|| contention::throughput(&contended));
    let order = order::order(&contended, arrivals);
    let pictures: [(&str, Option<Picture>); 5] = [
        ("latency-vs-contenders.svg", latency),
        ("throughput-vs-contenders.svg", throughput),
        ("arrival-vs-acquisition.svg", order),
        ("queue-over-time.svg", queue::queue(&contended)),
        ("memory-over-time.svg", memory::memory(&keyspaces)),
    ];
    let drawn = pictures.into_iter();
    let drawn = drawn.filter_map(|(name, picture)| Some((name.to_owned(), picture?.svg())));
    drawn.collect()
}

/// Returns the name of a case, with a remark for the closed model: contenders there ask again
/// only when they are done, so no queue can grow, and its curves cannot be compared with those
/// of the open model.
fn named(case: &str, steps: &[ContendStep]) -> String {
    match steps.iter().any(|step| step.model == "closed") {
        true => format!("{case} (closed)"),
        false => case.to_owned(),
    }
}

#[cfg(test)]
mod tests;
