//! Runs, phase by phase: prepare once → for each case of each run: start,
//! drive, heal, collect, clean, judge → write the result. Whatever happens on
//! the way, what was started is healed and removed.

mod acts;
mod case;
mod clock_desk;
mod collect;
mod drive;
mod evidence;
mod folder;
mod follow;
#[cfg(test)]
mod heard;
mod judge;
mod load;
mod many;
mod mutant;
mod nodes;
mod observer;
mod open_run;
mod page;
mod phases;
mod possible;
mod prepare;
mod recorded;
mod seen;
mod settle;
mod slots;
mod stage;
mod through_faults;
mod time_stamp;
mod workers;

pub use folder::{
    FolderError, JUNIT, REPORT, RESULT, RunFolder, SCENARIO, make_folder, make_folder_in, to_json,
    write_failed, write_whole,
};
pub use judge::judge_run;
pub use load::{LocalRequest, ServerAddresses, run_local};
pub use many::{Pace, run_all};
#[cfg(debug_assertions)]
pub use mutant::mutants;
pub use page::{not_judged, write_page};

use crate::cluster::topology::{Service, Topology};
use crate::cluster::{ClusterError, Image, Runtime};
use crate::load::LoadError;
use crate::model::{Name, RunRecord};
use crate::scenario::{Case, Scenario};
use nodes::CaseNodes;
use possible::lacking;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// What is to be run, and how.
pub struct RunRequest<'a> {
    pub scenario: &'a Scenario,
    /// Every topology that a case may name.
    pub topologies: &'a BTreeMap<String, Topology>,
    /// What folders of images are relative to.
    pub home: &'a Path,
    /// The server of every link's proxy.
    pub toxiproxy: &'a Service,
    /// Where journals of faults are kept until these are undone.
    pub journals: PathBuf,
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
    ServiceEnded {
        what: String,
        node: Name,
        log: String,
    },
    #[error("the resource could not be asked for {what}: {reason}")]
    Resource { what: String, reason: String },
    #[error("a resource of its own cannot be started: {reason}")]
    NoResource { reason: String },
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("{}", .0.join("\n"))]
    NotHealed(Vec<String>),
    #[error("{0}")]
    Report(String),
    #[error("{which}: {error}")]
    InCase { which: String, error: Box<RunError> },
    #[error("{first}\n{then}")]
    AndAlso {
        first: Box<RunError>,
        then: Box<RunError>,
    },
    #[error("{first}\nand then, cleaning up: {then}")]
    AndThen {
        first: Box<RunError>,
        then: Box<RunError>,
    },
}

impl RunRequest<'_> {
    /// The cases to run, in the order of the file.
    fn chosen(&self) -> impl Iterator<Item = &Case> {
        let cases = self.scenario.cases.iter();
        cases.filter(|case| self.case.is_none_or(|only| case.name == *only))
    }

    /// Why a case cannot be played here; None where nothing speaks against it.
    pub fn lacking(&self, case: &Case, runtime: &dyn Runtime) -> Option<String> {
        let nodes = CaseNodes::new(self, case);
        lacking(runtime, &nodes, self.toxiproxy, &case.setup)
    }

    /// What there is to say of a run that did not come to its turn.
    pub fn not_begun(&self) -> RunRecord {
        RunRecord {
            scenario: self.scenario.name.clone(),
            scenario_hash: self.scenario.hash(),
            seed: Some(self.seed),
            settings: self.scenario.settings.words(),
            mutant: self.mutant.clone(),
            cases: Vec::new(),
            unfinished: self.chosen().map(|case| case.name.clone()).collect(),
            environment: BTreeMap::new(),
            folder: PathBuf::new(),
        }
    }

    fn topology(&self, case: &Case) -> &Topology {
        &self.topologies[&case.setup.topology]
    }

    /// What the case's workers are started from, where it is not this program.
    fn worker_image(&self, case: &Case) -> Option<Image> {
        let name = case.setup.worker_image.as_ref()?;
        Some(Image::named(name, self.home))
    }
}

impl RunError {
    /// Among many cases it has to be said which one it was.
    fn in_case(self, scenario: &str, case: &str) -> RunError {
        match self {
            RunError::Interrupted => RunError::Interrupted,
            error => RunError::InCase {
                which: format!("{scenario} {case}"),
                error: Box::new(error),
            },
        }
    }

    /// Whether the first thing to say is that somebody interrupted.
    fn is_interrupt(&self) -> bool {
        match self {
            RunError::Interrupted => true,
            RunError::AndAlso { first, .. } => first.is_interrupt(),
            _ => false,
        }
    }
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
