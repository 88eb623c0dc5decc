//! Runs, phase by phase: prepare once → for each case of each run: create, links, start, drive,
//! heal, collect, remove, judge → write the result. Everything that was started is healed and
//! removed, whatever happens on the way.

mod acts;
mod case;
mod clock_desk;
mod collect;
mod drive;
mod evidence;
mod folder;
mod follow;
mod groundwork;
mod guests;
mod judge;
mod load;
mod many;
mod mutant;
mod nodes;
mod observer;
mod once;
mod open_run;
mod options;
mod page;
mod phase_times;
mod play;
mod prepare;
mod recorded;
mod rehearsal;
#[cfg(test)]
pub mod said_lines;
mod seen;
mod settle;
mod simulated;
mod slots;
mod through_faults;
mod time_stamp;
mod workers;

pub use folder::{
    FolderError, JUNIT, REPORT, RESULT, RunFolder, SCENARIO, make_folder, make_folder_in, to_json,
    write_failed, write_whole,
};
pub use groundwork::Groundwork;
pub use judge::judge_run;
pub use load::{LocalRequest, ServerAddresses, run_local};
pub use many::{Report, run_all};
#[cfg(debug_assertions)]
pub use mutant::mutants;
pub use once::{Once, play_once, prepare_for, simulate_once};
#[cfg(debug_assertions)]
pub use options::mutant;
pub use options::{Lab, RunOptions, RuntimeChoice};
pub use page::{not_judged, write_page};
pub use rehearsal::WorkerLimits;

use crate::cluster::topology::Endpoint;
use crate::cluster::{Cluster, ClusterError};
use crate::faults::Nemesis;
use crate::load::LoadError;
use crate::model::{CaseNotes, CaseResult, Event, Name, RunRecord};
use crate::progress::Progress;
use crate::scenario::{Case, Scenario};
use bounded_io::files;
use nodes::CaseNodes;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

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
    /// An attached server cannot be used.
    #[error("{reason}")]
    Attached { reason: String },
    /// A person has to decide something first.
    #[error("{0}")]
    NotAllowed(String),
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

pub type RunResult<T = ()> = Result<T, RunError>;

impl RunError {
    /// Adds the name of the case to the error, because a run may have many cases.
    fn in_case(self, scenario: &str, case: &str) -> RunError {
        match self {
            RunError::Interrupted => RunError::Interrupted,
            error => RunError::InCase {
                which: format!("{scenario} {case}"),
                error: Box::new(error),
            },
        }
    }

    /// Returns whether the first thing to report is an interrupt.
    fn is_interrupt(&self) -> bool {
        match self {
            RunError::Interrupted => true,
            RunError::AndAlso { first, .. } => first.is_interrupt(),
            _ => false,
        }
    }
}

/// Runs the work, and gives it up at an interrupt.
pub async fn stop_at<T>(
    interrupt: &CancellationToken,
    work: impl Future<Output = RunResult<T>>,
) -> RunResult<T> {
    tokio::select! {
        biased;
        () = interrupt.cancelled() => Err(RunError::Interrupted),
        done = work => done,
    }
}
