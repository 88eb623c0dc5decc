//! What a run came to: the judge's word on the recorded files.

use super::evidence::CaseNotes;
use super::recorded::read_case;
use super::{FolderError, RunRequest};
use crate::checker;
use crate::model::{CaseVerdict, FaultRow, Fence, Judgement, Outcome};
use crate::scenario::{Case, Scenario};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

pub struct RunOutcome {
    pub scenario: String,
    pub scenario_hash: String,
    pub seed: u64,
    pub mutant: Option<String>,
    pub cases: Vec<CaseOutcome>,
    /// Versions, kernel, image ids.
    pub environment: BTreeMap<String, String>,
    pub folder: PathBuf,
}

pub struct CaseOutcome {
    pub name: String,
    pub fence: Fence,
    pub judgement: Judgement,
    pub verdict: CaseVerdict,
    pub faults: Vec<FaultRow>,
    pub notes: CaseNotes,
    /// The first event: times are told from here.
    pub started_ns: u64,
}

impl RunOutcome {
    pub fn new(
        request: &RunRequest<'_>,
        environment: BTreeMap<String, String>,
        folder: PathBuf,
    ) -> RunOutcome {
        RunOutcome {
            scenario: request.scenario.name.clone(),
            scenario_hash: request.scenario.hash(),
            seed: request.seed,
            mutant: request.mutant.clone(),
            cases: Vec::new(),
            environment,
            folder,
        }
    }

    /// A recorded run, judged again from its files alone.
    pub fn recorded(
        scenario: &Scenario,
        seed: u64,
        folder: &Path,
    ) -> Result<RunOutcome, FolderError> {
        let recorded = |case: &&Case| folder.join(&case.name).is_dir();
        let cases = scenario.cases.iter().filter(recorded);
        let cases = cases.map(|case| judge_case(case, &folder.join(&case.name)));
        Ok(RunOutcome {
            scenario: scenario.name.clone(),
            scenario_hash: scenario.hash(),
            seed,
            mutant: None,
            cases: cases.collect::<Result<_, _>>()?,
            environment: BTreeMap::new(),
            folder: folder.to_owned(),
        })
    }

    /// The worst of all cases: false beats unknown beats true.
    pub fn verdict(&self) -> Outcome {
        let worst = self.cases.iter().map(|case| case.verdict.outcome).min();
        worst.unwrap_or(Outcome::Inconclusive)
    }
}

/// Judges the files of one case, right after the run or at any later time.
pub fn judge_case(case: &Case, folder: &Path) -> Result<CaseOutcome, FolderError> {
    let (record, mut notes) = read_case(folder)?;
    let started = Instant::now();
    let judgement = checker::judge(&record);
    let verdict = checker::verdict(&judgement, &case.expect);
    let judge_ms = started.elapsed().as_millis() as u64;
    notes.measurements.insert("judge_ms".to_owned(), judge_ms);
    let started_ns = record.history.iter().map(|event| event.at_ns).min();
    Ok(CaseOutcome {
        name: case.name.clone(),
        fence: case.fence,
        judgement,
        verdict,
        faults: record.faults,
        notes,
        started_ns: started_ns.unwrap_or_default(),
    })
}
