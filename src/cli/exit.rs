//! The exit codes of the command line, and the exit code of each failure.

use super::*;
use crate::clock::SkewError;
use crate::cluster::{ClusterError, TopologyError};
use crate::load::LoadError;
use crate::run::{FolderError, RunError};
use crate::scenario::LibraryError;
use crate::yaml::{Complaint, InvalidFile};
use std::fmt;
use std::process::ExitCode;

#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::FromRepr)]
#[repr(i64)]
pub enum Exit {
    AsExpected = 0,
    NotAsExpected = 1,
    Inconclusive = 2,
    Usage = 64,
    Unavailable = 69,
    Harness = 70,
    Interrupted = 130,
}

impl Exit {
    /// Returns the exit code of a command that checks many things.
    pub fn expected_if(all_good: bool, otherwise: Exit) -> Exit {
        if all_good {
            Exit::AsExpected
        } else {
            otherwise
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

impl From<Outcome> for Exit {
    fn from(outcome: Outcome) -> Exit {
        match outcome {
            Outcome::AsExpected => Exit::AsExpected,
            Outcome::NotAsExpected => Exit::NotAsExpected,
            Outcome::Inconclusive => Exit::Inconclusive,
        }
    }
}

/// The reason why a command ended without a verdict: a message and an exit code.
#[derive(Debug)]
pub struct Failure {
    pub exit: Exit,
    message: String,
    /// The problems of a file, with their positions.
    problems: Vec<Complaint>,
}

impl Failure {
    pub fn new(exit: Exit, message: impl fmt::Display) -> Failure {
        Failure {
            exit,
            message: message.to_string(),
            problems: Vec::new(),
        }
    }

    /// Returns the failure as a JSON document for programs.
    pub fn document(&self) -> Value {
        let mut document = json!({ "error": self.message, "exit_code": self.exit as u8 });
        if !self.problems.is_empty() {
            document["problems"] = json!(self.problems);
        }
        document
    }

    fn invalid(invalid: InvalidFile) -> Failure {
        Failure {
            exit: Exit::Usage,
            message: invalid.to_string(),
            problems: invalid.complaints,
        }
    }

    pub fn usage(message: impl fmt::Display) -> Failure {
        Failure::new(Exit::Usage, message)
    }

    pub fn harness(message: impl fmt::Display) -> Failure {
        Failure::new(Exit::Harness, message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<LibraryError> for Failure {
    fn from(error: LibraryError) -> Failure {
        match error {
            LibraryError::Invalid(invalid) => Failure::invalid(invalid),
            error => Failure::usage(error),
        }
    }
}

impl From<TopologyError> for Failure {
    fn from(error: TopologyError) -> Failure {
        match error {
            TopologyError::Invalid(invalid) => Failure::invalid(invalid),
            error => Failure::usage(error),
        }
    }
}

impl From<FolderError> for Failure {
    fn from(error: FolderError) -> Failure {
        Failure::harness(error)
    }
}

impl From<ClusterError> for Failure {
    fn from(error: ClusterError) -> Failure {
        Failure::new(cluster_exit(&error), error)
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Failure {
        Failure::new(run_exit(&error), error)
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Failure {
        let exit = match &error {
            LoadError::Usage(_) => Exit::Usage,
            // The server could not do more, for whatever reason.
            LoadError::Unreachable { .. } | LoadError::Unusable { .. } | LoadError::CutShort(_) => {
                Exit::Unavailable
            }
        };
        Failure::new(exit, error)
    }
}

impl From<SkewError> for Failure {
    fn from(error: SkewError) -> Failure {
        Failure::new(skew_exit(&error), error)
    }
}

fn cluster_exit(error: &ClusterError) -> Exit {
    match error {
        ClusterError::Unreachable { .. }
        | ClusterError::BadHost { .. }
        | ClusterError::Elsewhere { .. }
        | ClusterError::NoServer { .. }
        | ClusterError::Missing { .. } => Exit::Unavailable,
        ClusterError::Topology(_) => Exit::Usage,
        _ => Exit::Harness,
    }
}

fn skew_exit(error: &SkewError) -> Exit {
    match error {
        error if error.is_impossible_here() => Exit::Unavailable,
        error if error.is_wrong_usage() => Exit::Usage,
        _ => Exit::Harness,
    }
}

fn run_exit(error: &RunError) -> Exit {
    match error {
        RunError::Interrupted => Exit::Interrupted,
        RunError::Cluster(error) => cluster_exit(error),
        RunError::Load(LoadError::Usage(_)) | RunError::NotAllowed(_) => Exit::Usage,
        RunError::Attached { .. } => Exit::Unavailable,
        RunError::Load(LoadError::Unreachable { .. } | LoadError::Unusable { .. }) => {
            Exit::Unavailable
        }
        RunError::InCase { error, .. } => run_exit(error),
        RunError::AndAlso { first, .. } => run_exit(first),
        _ => Exit::Harness,
    }
}
