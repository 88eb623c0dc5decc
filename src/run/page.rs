//! `report.html`, the page of a run, made from the record.

use super::evidence::ACCEPTED;
use super::load::draw_plots;
use super::recorded::read_case;
use super::*;
use crate::report::html::{CaseEvidence, RunPage, page};
use crate::scenario::once_each;
use fencepost_judge::checker;

/// Writes the page into the folder of its run and returns its path. `ended_early` says why the
/// run has no whole result, if it has none.
pub fn write_page(
    run: &RunRecord,
    scenario: &Scenario,
    ended_early: Option<String>,
) -> Result<PathBuf, FolderError> {
    let mut evidence = BTreeMap::new();
    for case in run.cases.iter().filter(|case| is_drawn(case)) {
        let folder = run.folder.join(&case.name);
        // A case that recorded nothing has nothing to draw.
        if folder.join(ACCEPTED).symlink_metadata().is_ok() {
            let planned = scenario.cases.iter().find(|one| one.name == case.name);
            let plan = planned.map(|one| one.plan()).unwrap_or_default();
            let (record, _) = read_case(&folder, plan)?;
            let held = checker::held(&record);
            evidence.insert(case.name.clone(), CaseEvidence { record, held });
        }
    }
    let text = page(&RunPage {
        run,
        about: &scenario.about,
        scenario: &scenario.text,
        evidence: &evidence,
        plots: &draw_plots(run),
        only: only(run, scenario),
        ended_early,
    });
    let path = run.folder.join(REPORT);
    write_whole(&path, text.as_bytes()).map_err(FolderError::of_a_page)?;
    Ok(path)
}

/// Returns what the page says of a run that ended before these cases were judged.
pub fn not_judged(cases: &[Name]) -> Option<String> {
    let some = !cases.is_empty();
    some.then(|| format!("the run ended before it had judged {}", cases.join(", ")))
}

/// Returns whether a case is drawn. A load may have millions of rows, so it is drawn only if
/// something went wrong.
fn is_drawn(case: &CaseResult) -> bool {
    case.notes.load.is_none() || !case.judgement.stories.is_empty()
}

/// Returns the one case or the one service that was asked for, if the scenario has others.
fn only<'a>(run: &'a RunRecord, scenario: &'a Scenario) -> Option<&'a str> {
    let is_of_run = |case: &&Case| {
        run.unfinished.contains(&case.name) || run.cases.iter().any(|one| one.name == case.name)
    };
    let ran: Vec<&Case> = scenario.cases.iter().filter(is_of_run).collect();
    if ran.len() == scenario.cases.len() {
        return None;
    }
    match (&*ran, &*once_each(ran.iter().map(|case| &case.service))) {
        ([one], _) => Some(&one.name),
        (_, [Some(service)]) => Some(service),
        _ => None,
    }
}
