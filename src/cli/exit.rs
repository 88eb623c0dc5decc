//! The exit codes of the contract, and which failure is which.

use crate::cluster::{ClusterError, TopologyError};
use crate::model::Outcome;
use crate::run::{FolderError, RunError};
use crate::scenario::LibraryError;
use std::fmt;
use std::process::ExitCode;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    AsExpected = 0,
    NotAsExpected = 1,
    Inconclusive = 2,
    Usage = 64,
    Unavailable = 69,
    Harness = 70,
    Interrupted = 130,
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

/// Why a command ended without a verdict: a message and an exit code.
#[derive(Debug)]
pub struct Failure {
    pub exit: Exit,
    message: String,
}

impl Failure {
    pub fn usage(message: impl fmt::Display) -> Failure {
        Failure {
            exit: Exit::Usage,
            message: message.to_string(),
        }
    }

    pub fn harness(message: impl fmt::Display) -> Failure {
        Failure {
            exit: Exit::Harness,
            message: message.to_string(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<LibraryError> for Failure {
    fn from(error: LibraryError) -> Failure {
        Failure::usage(error)
    }
}

impl From<TopologyError> for Failure {
    fn from(error: TopologyError) -> Failure {
        Failure::usage(error)
    }
}

impl From<FolderError> for Failure {
    fn from(error: FolderError) -> Failure {
        Failure::harness(error)
    }
}

impl From<ClusterError> for Failure {
    fn from(error: ClusterError) -> Failure {
        Failure {
            exit: cluster_exit(&error),
            message: error.to_string(),
        }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Failure {
        Failure {
            exit: run_exit(&error),
            message: error.to_string(),
        }
    }
}

fn cluster_exit(error: &ClusterError) -> Exit {
    match error {
        ClusterError::Unreachable { .. } | ClusterError::Missing { .. } => Exit::Unavailable,
        ClusterError::Topology(_) => Exit::Usage,
        _ => Exit::Harness,
    }
}

fn run_exit(error: &RunError) -> Exit {
    match error {
        RunError::Interrupted => Exit::Interrupted,
        RunError::Cluster(error) => cluster_exit(error),
        _ => Exit::Harness,
    }
}
