//! What a run runs on.

use super::exit::{Exit, Failure};
use super::state::State;
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
        let state = State::open()?;
        match self {
            Choice::Docker => docker(&state).await,
            Choice::Local => local(&state),
            Choice::Auto => match docker_there(&state).await {
                Ok(runtime) => Ok(with_docker(runtime, &state)),
                Err(error @ ClusterError::Unreachable { .. }) if in_ci() => {
                    Err(Failure::new(Exit::Unavailable, error))
                }
                Err(ClusterError::Unreachable { host, reason }) => {
                    progress.say(&format!(
                        "Docker does not answer at {host} ({reason}); running on local processes, as with --runtime local"
                    ));
                    local(&state)
                }
                Err(error) => Err(error.into()),
            },
        }
    }
}

pub async fn docker_there(state: &State) -> Result<DockerRuntime, ClusterError> {
    DockerRuntime::connect(state.images_lock()).await
}

async fn docker(state: &State) -> Result<Chosen, Failure> {
    Ok(with_docker(docker_there(state).await?, state))
}

pub fn with_docker(runtime: DockerRuntime, state: &State) -> Chosen {
    Chosen {
        runtime: Box::new(runtime),
        journals: state.journals(),
    }
}

pub fn local(state: &State) -> Result<Chosen, Failure> {
    Ok(Chosen {
        runtime: Box::new(LocalRuntime::new(&state.local_runs())?),
        journals: state.local_journals(),
    })
}

/// Where nobody reads along, falling back would hide that Docker was not tested.
pub fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::home::Home;
    use crate::run::RunRequest;
    use crate::scenario::Settings;

    /// Everything in the library that takes a container.
    const NOT_LOCALLY: [&str; 9] = [
        // Links between members are cut.
        "etcd-minority-holder unfenced",
        "etcd-minority-holder fenced",
        "etcd-minority-holder with-the-majority",
        // Workers are frozen.
        "storm redis-unfenced",
        "storm redis",
        "storm redlock",
        "storm etcd",
        // One worker is frozen.
        "worker-crash only-looks-dead-unfenced",
        "worker-crash only-looks-dead-fenced",
    ];

    /// Nothing else is left out, and nothing of it silently.
    #[test]
    fn the_whole_library_runs_locally_but_for_what_takes_a_container() {
        let home = Home::find(Some(env!("CARGO_MANIFEST_DIR").as_ref())).unwrap();
        let (topologies, toxiproxy) = (home.topologies().unwrap(), home.toxiproxy().unwrap());
        let around = home.surroundings().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let runtime = LocalRuntime::new(folder.path()).unwrap();
        let mut lacking = Vec::new();
        for name in home.library().names().unwrap() {
            let scenario = home.library().load(&name, &Settings::default(), &around);
            let scenario = scenario.unwrap();
            let request = RunRequest {
                scenario: &scenario,
                topologies: &topologies,
                home: home.folder(),
                toxiproxy: &toxiproxy,
                journals: PathBuf::new(),
                case: None,
                seed: 0,
                keep: false,
                results: PathBuf::new(),
                mutant: None,
            };
            for case in &scenario.cases {
                if let Some(reason) = request.lacking(case, &runtime) {
                    assert!(reason.ends_with("use --runtime docker"), "{reason}");
                    lacking.push(format!("{name} {}", case.name));
                }
            }
        }
        assert_eq!(lacking, NOT_LOCALLY);
    }
}
