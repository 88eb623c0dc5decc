//! What a run runs on.

use super::exit::{Exit, Failure};
use super::state;
use crate::cluster::docker::DockerRuntime;
use crate::cluster::local::LocalRuntime;
use crate::cluster::{ClusterError, Runtime};
use crate::progress::Progress;
use clap::ValueEnum;
use std::path::PathBuf;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Choice {
    /// Containers where Docker answers; else, unless CI is set, local processes
    Auto,
    /// Containers
    Docker,
    /// Processes of this machine: its own redis-server and etcd
    Local,
}

pub struct Chosen {
    pub runtime: Box<dyn Runtime>,
    /// Where journals of faults are kept: each runtime heals its own.
    pub journals: PathBuf,
}

impl Choice {
    pub async fn open(self, progress: &dyn Progress) -> Result<Chosen, Failure> {
        match self {
            Choice::Docker => docker().await,
            Choice::Local => local(),
            Choice::Auto => match DockerRuntime::connect().await {
                Ok(runtime) => Ok(with_docker(runtime)),
                Err(error @ ClusterError::Unreachable { .. }) if in_ci() => {
                    Err(Failure::new(Exit::Unavailable, error))
                }
                Err(ClusterError::Unreachable { host, .. }) => {
                    progress.say(&format!(
                        "Docker does not answer at {host}; running on local processes, as with --runtime local"
                    ));
                    local()
                }
                Err(error) => Err(error.into()),
            },
        }
    }
}

pub async fn docker() -> Result<Chosen, Failure> {
    Ok(with_docker(DockerRuntime::connect().await?))
}

fn with_docker(runtime: DockerRuntime) -> Chosen {
    Chosen {
        runtime: Box::new(runtime),
        journals: state::journals(),
    }
}

pub fn local() -> Result<Chosen, Failure> {
    let runtime = LocalRuntime::new(&state::local_runs()).map_err(|error| {
        let remedy = "set XDG_STATE_HOME to a folder that can be written to";
        Failure::harness(format!("{error}\n{remedy}"))
    })?;
    Ok(Chosen {
        runtime: Box::new(runtime),
        journals: state::local_journals(),
    })
}

/// Where nobody reads along, falling back would hide that Docker was not tested.
fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| !value.is_empty())
}
