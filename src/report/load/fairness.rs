//! The order of service, of all cases and steps in one table.

use super::words::{cut, each};
use super::*;

const LONGEST_NAME: usize = 24;

/// A step with the name of its case.
type Row<'a> = (&'a str, &'a ContendStep);

/// Returns the table; empty if there were no contenders.
pub fn table(loads: &[(&CaseResult, &LoadRecord)], width: usize) -> String {
    let steps = loads.iter();
    let steps = steps.flat_map(|(case, load)| load.steps.iter().map(|step| (&*case.name, step)));
    let steps: Vec<Row<'_>> = steps.collect();
    if steps.is_empty() {
        return String::new();
    }
    let columns: [Column<Row<'_>>; 8] = [
        ("fairness", |(case, _)| cut(case, LONGEST_NAME)),
        ("contenders", |(_, step)| step.contenders.to_string()),
        ("out of order", |(_, step)| {
            each(step, percent(step.fairness.out_of_order))
        }),
        ("overtakes", |(_, step)| {
            each(step, figure(step.fairness.mean_overtakes))
        }),
        ("max", |(_, step)| {
            each(step, step.fairness.max_overtakes.to_string())
        }),
        ("Jain", |(_, step)| {
            each(step, format!("{:.3}", step.fairness.jain))
        }),
        ("worst wait", |(_, step)| {
            time(step.fairness.worst_wait_us as f64)
        }),
        ("starved", |(_, step)| step.fairness.starved.to_string()),
    ];
    Grid::of(&columns, &steps).text(INDENT, width) + "\n"
}
