//! A run, phase by phase: prepare → for each case: start, drive, heal,
//! collect, clean, judge → write the result. Whatever happens on the way, what
//! was started is healed and removed.

mod case;
mod collect;
mod drive;
mod evidence;
mod folder;
mod judge;
mod nodes;
mod observer;
mod phases;
mod recorded;
mod time_stamp;
mod workers;

pub use folder::{FolderError, RESULT, RunFolder, SCENARIO, to_json};
pub use judge::{Recorded, judge_run};

use crate::cluster::{ClusterError, Runtime, Topology};
use crate::model::RunRecord;
use crate::progress::Progress;
use crate::scenario::{Case, Scenario};
use std::collections::BTreeMap;
use std::path::PathBuf;
use tokio_util::sync::CancellationToken;

/// What is to be run, and how.
pub struct RunRequest<'a> {
    pub scenario: &'a Scenario,
    pub topology: &'a Topology,
    /// Only this case.
    pub case: Option<&'a str>,
    pub seed: u64,
    /// Leave the containers for looking at.
    pub keep: bool,
    pub results: PathBuf,
    /// A defect switched on in a test build, by name.
    pub mutant: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("interrupted; everything was healed and removed")]
    Interrupted,
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error("{what} ended in the middle of the run\n{log}")]
    ServiceEnded { what: String, log: String },
    #[error("the resource could not be asked for {what}: {reason}")]
    Resource { what: String, reason: String },
    #[error("{first}\nand then, cleaning up: {then}")]
    AndThen {
        first: Box<RunError>,
        then: Box<RunError>,
    },
}

/// Runs every case of the scenario and writes the result of each before the
/// next one starts.
pub async fn run(
    request: &RunRequest<'_>,
    runtime: &dyn Runtime,
    progress: &dyn Progress,
    interrupt: &CancellationToken,
) -> Result<RunRecord, RunError> {
    let scenario = request.scenario;
    RunFolder::check(&request.results, &scenario.name)?;
    let environment = stop_at(interrupt, prepare(request, runtime, progress)).await?;
    let folder = RunFolder::create(
        &request.results,
        &scenario.name,
        request.seed,
        &scenario.text,
    )?;
    let chosen = scenario.cases.iter();
    let chosen: Vec<&Case> = chosen
        .filter(|case| request.case.is_none_or(|only| only == case.name))
        .collect();
    let mut record = RunRecord {
        scenario: scenario.name.clone(),
        scenario_hash: scenario.hash(),
        seed: request.seed,
        mutant: request.mutant.clone(),
        cases: Vec::new(),
        unfinished: chosen.iter().map(|case| case.name.clone()).collect(),
        environment,
        folder: folder.path.clone(),
    };
    // From the start there is a result, and it says what has not been done.
    folder.write(RESULT, &to_json(&crate::report::json::result(&record)))?;
    for case in chosen {
        let ran = case::run_case(request, case, &folder, runtime, progress, interrupt).await?;
        record.unfinished.retain(|name| *name != case.name);
        record.cases.push(ran);
        folder.write(RESULT, &to_json(&crate::report::json::result(&record)))?;
    }
    Ok(record)
}

async fn prepare(
    request: &RunRequest<'_>,
    runtime: &dyn Runtime,
    progress: &dyn Progress,
) -> Result<BTreeMap<String, String>, RunError> {
    for leftover in runtime.sweep().await? {
        progress.say(&format!(
            "removed {leftover}, left behind by a run that was killed"
        ));
    }
    Ok(runtime.prepare(request.topology, progress).await?)
}

/// Gives up what is under way when somebody interrupts.
async fn stop_at<T>(
    interrupt: &CancellationToken,
    work: impl Future<Output = Result<T, RunError>>,
) -> Result<T, RunError> {
    tokio::select! {
        biased;
        () = interrupt.cancelled() => Err(RunError::Interrupted),
        done = work => done,
    }
}
