//! The judge's word on recorded files, right after the run or years later.

use super::FolderError;
use super::recorded::read_case;
use crate::checker;
use crate::model::{CaseResult, RunRecord};
use crate::scenario::{Case, Scenario};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

/// A recorded run, judged again from its files alone.
pub fn judge_run(scenario: &Scenario, seed: u64, folder: &Path) -> Result<RunRecord, FolderError> {
    let recorded = |case: &&Case| folder.join(&case.name).is_dir();
    let cases = scenario.cases.iter().filter(recorded);
    let cases = cases.map(|case| judge_case(case, &folder.join(&case.name)));
    Ok(RunRecord {
        scenario: scenario.name.clone(),
        scenario_hash: scenario.hash(),
        seed,
        mutant: None,
        cases: cases.collect::<Result<_, _>>()?,
        environment: BTreeMap::new(),
        folder: folder.to_owned(),
    })
}

pub fn judge_case(case: &Case, folder: &Path) -> Result<CaseResult, FolderError> {
    let (record, mut notes) = read_case(folder)?;
    let started = Instant::now();
    let judgement = checker::judge(&record);
    let verdict = checker::verdict(&judgement, &case.expect);
    let judge_ms = started.elapsed().as_millis() as u64;
    notes.measurements.insert("judge_ms".to_owned(), judge_ms);
    let started_ns = record.history.iter().map(|event| event.at_ns).min();
    Ok(CaseResult {
        name: case.name.clone(),
        fence: case.fence,
        judgement,
        verdict,
        faults: record.faults,
        notes,
        started_ns: started_ns.unwrap_or_default(),
    })
}
