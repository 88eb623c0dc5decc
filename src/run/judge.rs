//! Judges recorded files, right after the run or years later.

use super::folder::read_failed;
use super::recorded::read_case;
use super::*;
use crate::load::heard;
use crate::model::{CaseVerdict, LoadRecord, Outcome};
use crate::report::document::ResultDocument;
use fencepost_judge::checker;
use std::collections::BTreeSet;
use std::time::Instant;

/// Judges a recorded run again from its files alone. Facts that they do not contain, such as the
/// seed, come from its result, if it has one.
pub fn judge_run(
    scenario: &Scenario,
    recorded: Option<&ResultDocument>,
    folder: &Path,
) -> Result<RunRecord, FolderError> {
    let mut cases = Vec::new();
    for case in &scenario.cases {
        let folder = folder.join(&case.name);
        if files::is_folder(&folder).map_err(read_failed(&folder))? {
            cases.push(judge_case(case, &folder)?);
        }
    }
    let stable = recorded.map(|recorded| &recorded.stable);
    let unfinished = asked_for(scenario, recorded).into_iter();
    let unfinished = unfinished.filter(|name| !cases.iter().any(|case| case.name == **name));
    let environment = recorded.map(|recorded| recorded.environment.clone());
    Ok(RunRecord {
        scenario: scenario.name.clone(),
        scenario_hash: scenario.hash(),
        seed: stable.and_then(|stable| stable.seed),
        settings: scenario.settings.words(),
        mutant: stable.and_then(|stable| stable.mutant.clone()),
        unfinished: unfinished.cloned().collect(),
        cases,
        environment: environment.unwrap_or_default(),
        folder: folder.to_owned(),
    })
}

/// Returns the cases that a run was for, as far as is known: those that its result names, or all
/// of the scenario if there is no result. A case of these that left no evidence is not judged,
/// whatever the result says of it.
fn asked_for<'a>(scenario: &'a Scenario, recorded: Option<&'a ResultDocument>) -> Vec<&'a Name> {
    let all = scenario.cases.iter().map(|case| &case.name);
    let Some(ResultDocument { stable, .. }) = recorded else {
        return all.collect();
    };
    let named: BTreeSet<&Name> = stable.cases.keys().chain(&stable.unfinished).collect();
    let mut in_order: Vec<&Name> = all.filter(|name| named.contains(name)).collect();
    let strange = named
        .into_iter()
        .filter(|name| scenario.cases.iter().all(|case| case.name != **name));
    in_order.extend(strange);
    in_order
}

pub fn judge_case(case: &Case, folder: &Path) -> Result<CaseResult, FolderError> {
    let (record, mut notes) = read_case(folder, case.plan())?;
    let started = Instant::now();
    let mut judgement = checker::judge(&record);
    let verdict = match notes.never_played {
        // Counts of a case that was never played would look like a result.
        true => CaseVerdict {
            outcome: Outcome::Inconclusive,
            findings: Vec::new(),
            doubts: checker::gaps(&record),
        },
        false => checker::verdict(&record, &judgement, &case.expect),
    };
    let misses = checker::stories_of_misses(&record, &judgement, &verdict);
    judgement.stories.extend(misses);
    let judge_ms = started.elapsed().as_millis() as u64;
    notes.measurements.insert("judge_ms".to_owned(), judge_ms);
    let measured = judgement.measures.iter();
    let measured = measured.map(|(measure, length)| {
        let ms = length.as_millis() as u64;
        (format!("{}_ms", measure.name()), ms)
    });
    notes.measurements.extend(measured);
    if case.setup.measures_workers() {
        let steps: Vec<_> = heard(&record.history).into_iter().collect();
        notes.load = Some(LoadRecord {
            steps,
            ..LoadRecord::default()
        });
    }
    let started_ns = record.history.iter().map(|event| event.at_ns).min();
    Ok(CaseResult {
        name: case.name.clone(),
        service: case.service_run(),
        fence: case.fence,
        determined: case.setup.duration.is_none() && case.setup.load.is_none(),
        judgement,
        verdict,
        faults: record.faults,
        notes,
        started_ns: started_ns.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Outcome;
    use crate::report::document;
    use crate::run::evidence::{ACCEPTED, FAULTS, HISTORY, LOCKS};
    use crate::run::said_lines::pause_scenario;
    use std::fs;

    /// Makes a folder with these cases, and the result that it would have.
    fn run_of(cases: &[&str]) -> (tempfile::TempDir, ResultDocument) {
        let folder = tempfile::tempdir().unwrap();
        for case in cases {
            fs::create_dir(folder.path().join(case)).unwrap();
            for file in [HISTORY, ACCEPTED, FAULTS, LOCKS] {
                fs::write(folder.path().join(case).join(file), "").unwrap();
            }
        }
        let mut run = judge_run(&pause_scenario(), None, folder.path()).unwrap();
        run.seed = Some(1);
        run.unfinished.clear();
        let result = serde_json::to_vec(&ResultDocument::of(&run)).unwrap();
        (folder, document::read(&result).unwrap())
    }

    #[test]
    fn a_case_without_its_evidence_is_not_judged() {
        let scenario = pause_scenario();
        let (folder, recorded) = run_of(&["unfenced", "fenced"]);
        let whole = judge_run(&scenario, Some(&recorded), folder.path()).unwrap();
        assert_eq!((whole.cases.len(), whole.unfinished.len()), (2, 0));
        fs::remove_dir_all(folder.path().join("fenced")).unwrap();
        let lost = judge_run(&scenario, Some(&recorded), folder.path()).unwrap();
        assert_eq!(lost.unfinished, ["fenced"]);
        assert!(lost.verdict() <= Outcome::Inconclusive);
    }

    #[test]
    fn a_run_of_one_case_misses_no_other() {
        let (folder, recorded) = run_of(&["fenced"]);
        let run = judge_run(&pause_scenario(), Some(&recorded), folder.path()).unwrap();
        assert!(run.unfinished.is_empty(), "{:?}", run.unfinished);
        assert_eq!(run.seed, Some(1));
    }

    #[test]
    fn without_a_result_every_case_of_the_scenario_is_awaited_and_no_seed_is_known() {
        let (folder, _) = run_of(&[]);
        let run = judge_run(&pause_scenario(), None, folder.path()).unwrap();
        let all: Vec<Name> = pause_scenario()
            .cases
            .iter()
            .map(|case| case.name.clone())
            .collect();
        assert_eq!(run.unfinished, all);
        assert_eq!((run.seed, run.verdict()), (None, Outcome::Inconclusive));
    }
}
