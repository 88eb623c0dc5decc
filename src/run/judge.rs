//! The judge's word on recorded files, right after the run or years later.

use super::FolderError;
use super::recorded::read_case;
use crate::checker;
use crate::model::{CaseResult, CaseVerdict, Outcome, RunRecord};
use crate::report::recorded::Recorded;
use crate::scenario::{Case, Scenario};
use std::path::Path;
use std::time::Instant;

/// A recorded run, judged again from its files alone. What these cannot say, such as
/// the seed, is taken from its result, where it came to have one.
pub fn judge_run(
    scenario: &Scenario,
    recorded: Option<&Recorded>,
    folder: &Path,
) -> Result<RunRecord, FolderError> {
    let is_there = |case: &&Case| folder.join(&case.name).is_dir();
    let cases = scenario.cases.iter().filter(is_there);
    let cases = cases.map(|case| judge_case(case, &folder.join(&case.name)));
    let cases = cases.collect::<Result<Vec<_>, _>>()?;
    let judged = |name: &String| cases.iter().any(|case| case.name == *name);
    let stable = recorded.map(|recorded| &recorded.stable);
    let unfinished = stable.into_iter().flat_map(|stable| &stable.unfinished);
    let environment = recorded
        .into_iter()
        .flat_map(|recorded| &recorded.environment);
    let environment = environment.filter_map(|(name, what)| Some((name, what.as_str()?)));
    Ok(RunRecord {
        scenario: scenario.name.clone(),
        scenario_hash: scenario.hash(),
        seed: stable.map_or(0, |stable| stable.seed),
        settings: scenario.settings.words(),
        mutant: stable.and_then(|stable| stable.mutant.clone()),
        unfinished: unfinished.filter(|name| !judged(name)).cloned().collect(),
        cases,
        environment: environment
            .map(|(name, what)| (name.clone(), what.to_owned()))
            .collect(),
        folder: folder.to_owned(),
    })
}

pub fn judge_case(case: &Case, folder: &Path) -> Result<CaseResult, FolderError> {
    let (record, mut notes) = read_case(folder)?;
    let started = Instant::now();
    let judgement = checker::judge(&record);
    let verdict = match notes.never_played {
        // Counts of what never was would look like a result.
        true => CaseVerdict {
            outcome: Outcome::Inconclusive,
            findings: Vec::new(),
            doubts: record.gaps.clone(),
        },
        false => checker::verdict(&record, &judgement, &case.expect),
    };
    let judge_ms = started.elapsed().as_millis() as u64;
    notes.measurements.insert("judge_ms".to_owned(), judge_ms);
    let measured = judgement.measures.iter();
    let measured = measured.map(|(measure, length)| {
        let ms = length.as_millis() as u64;
        (format!("{}_ms", measure.name()), ms)
    });
    notes.measurements.extend(measured);
    let started_ns = record.history.iter().map(|event| event.at_ns).min();
    Ok(CaseResult {
        name: case.name.clone(),
        fence: case.fence,
        determined: case.setup.duration.is_none() && case.setup.load.is_none(),
        judgement,
        verdict,
        faults: record.faults,
        notes,
        started_ns: started_ns.unwrap_or_default(),
    })
}
