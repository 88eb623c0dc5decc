use crate::model::{ArrivalRow, CaseResult, RunRecord};
use crate::report::plot;
use crate::run::evidence::ARRIVALS;
use crate::run::folder::{FolderError, make_folder_in, write_whole};
use crate::run::recorded::read_lines;
use std::collections::BTreeMap;
use std::path::Path;

/// Writes `plots/*.svg` of a run with load; nothing for one without.
pub fn write_plots(run: &RunRecord) -> Result<(), FolderError> {
    for (name, svg) in draw_plots(run) {
        let folder = make_folder_in(&run.folder, "plots")?;
        write_whole(&folder.join(name), svg.as_bytes())?;
    }
    Ok(())
}

pub fn draw_plots(run: &RunRecord) -> Vec<(String, String)> {
    let loads = run.cases.iter().filter(|case| case.notes.load.is_some());
    let arrivals = loads.map(|case| {
        let file = run.folder.join(&case.name).join(ARRIVALS);
        (case.name.clone(), grants_of_the_largest_step(case, &file))
    });
    let arrivals: BTreeMap<_, _> = arrivals.collect();
    plot::plots(run, &arrivals)
}

/// Returns the arrivals that are drawn, of the millions that there may be. A row that cannot be
/// read is left out: plots are not evidence, and nothing is judged by the arrivals.
fn grants_of_the_largest_step(case: &CaseResult, file: &Path) -> Vec<ArrivalRow> {
    let steps = case.notes.load.iter().flat_map(|load| &load.steps);
    let Some(largest) = steps.map(|step| step.contenders).max() else {
        return Vec::new();
    };
    let drawn = |row: &ArrivalRow| row.step == largest && row.granted_ns.is_some();
    let mut rows = Vec::new();
    let _ = read_lines(file, |line| {
        rows.extend(serde_json::from_slice(line).ok().filter(drawn));
        true
    });
    rows
}
