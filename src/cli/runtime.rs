//! The runtime of a run: containers or local processes.

use super::*;
use crate::cluster::docker::DockerRuntime;
use crate::cluster::local::LocalRuntime;
use crate::cluster::{ClusterError, Runtime};
use crate::progress::Progress;
use crate::run::RuntimeChoice;
use crate::simulation::SimulatedRuntime;

pub struct OpenRuntime {
    pub runtime: Box<dyn Runtime>,
    /// The folder of the journals of faults: each runtime heals its own.
    pub journals: PathBuf,
}

pub async fn open(choice: RuntimeChoice, progress: &dyn Progress) -> Result<OpenRuntime, Failure> {
    let state = State::open()?;
    match choice {
        RuntimeChoice::Local => return local(&state),
        RuntimeChoice::Sim => return Ok(simulated(&state)),
        RuntimeChoice::Auto | RuntimeChoice::Docker => {}
    }
    match docker_there(&state).await {
        Err(ClusterError::Unreachable { host, reason })
            if choice == RuntimeChoice::Auto && !in_ci() =>
        {
            progress.say(&format!(
                "Docker does not answer at {host} ({reason}); running on local processes, as with --runtime local"
            ));
            local(&state)
        }
        runtime => Ok(with_docker(runtime?, &state)),
    }
}

pub async fn docker_there(state: &State) -> Result<DockerRuntime, ClusterError> {
    DockerRuntime::connect(state.images_lock()).await
}

pub fn with_docker(runtime: DockerRuntime, state: &State) -> OpenRuntime {
    OpenRuntime {
        runtime: Box::new(runtime),
        journals: state.journals(),
    }
}

pub fn local(state: &State) -> Result<OpenRuntime, Failure> {
    Ok(OpenRuntime {
        runtime: Box::new(LocalRuntime::new(&state.local_runs())?),
        journals: state.local_journals(),
    })
}

fn simulated(state: &State) -> OpenRuntime {
    OpenRuntime {
        runtime: Box::new(SimulatedRuntime),
        journals: state.simulated_journals(),
    }
}

/// Returns whether this is CI. Nobody watches there, so falling back to local processes would
/// hide that Docker was not tested.
pub fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::journal::{Debt, Healed, Journal, heal_leftovers};
    use crate::run::said_lines::SaidLines;
    use crate::run::{Groundwork, Lab, RunOptions};
    use crate::scenario::Settings;
    use tokio_util::sync::CancellationToken;

    /// The cases of the library that need a container, beside all on servers that are only run in
    /// containers.
    const NOT_LOCALLY: [&str; 16] = [
        // Their faults cut links between members.
        "etcd-minority-holder unfenced",
        "etcd-minority-holder fenced",
        "etcd-minority-holder with-the-majority",
        // Scripts and files of their images start them.
        "postgres-advisory-pgbouncer unfenced",
        "postgres-advisory-pgbouncer fenced",
        "postgres-advisory-pgbouncer marked-sessions",
        "postgres-advisory-pgbouncer lease",
        "postgres-failover unfenced",
        "postgres-failover fenced",
        "postgres-failover replica-up-to-date",
        // Their faults freeze workers.
        "storm redis-unfenced",
        "storm redis",
        "storm redlock",
        "storm etcd",
        // Their faults freeze one worker.
        "worker-crash only-looks-dead-unfenced",
        "worker-crash only-looks-dead-fenced",
    ];

    #[tokio::test]
    async fn what_this_process_owes_is_its_own_affair() {
        let folder = tempfile::tempdir().unwrap();
        let runtime = LocalRuntime::new(&folder.path().join("runs")).unwrap();
        let journals = folder.path().join("faults");
        let node = "a".into();
        let journal = Journal::new(&journals, &"r1".into());
        journal.owe(1, &[Debt::Thaw { node }]).unwrap();
        let healed = heal_leftovers(&journals, &runtime).await;
        assert_eq!(healed, Healed::default());
        assert!(journals.join("r1.jsonl").exists());
    }

    /// Everything else runs locally, and each of these cases is refused with a reason.
    #[test]
    fn the_whole_library_runs_locally_but_for_what_takes_a_container() {
        let home = Home::find(Some(env!("CARGO_MANIFEST_DIR").as_ref())).unwrap();
        let (topologies, toxiproxy) = (home.topologies().unwrap(), home.toxiproxy().unwrap());
        let around = home.surroundings().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let runtime = LocalRuntime::new(folder.path()).unwrap();
        let lab = Lab {
            options: &RunOptions {
                runtime: RuntimeChoice::Local,
                ..RunOptions::default()
            },
            runtime: &runtime,
            topologies: &topologies,
            resources: &home.resources().unwrap(),
            toxiproxy: &toxiproxy,
            home: &home.layers(),
            journals: folder.path(),
            groundwork: &Groundwork::default(),
            results: folder.path(),
            progress: &SaidLines::default(),
            interrupt: &CancellationToken::new(),
        };
        let mut lacking = Vec::new();
        for name in home.library().names().unwrap() {
            let scenario = home.library().load(&name, &Settings::default(), &around);
            let scenario = scenario.unwrap();
            for case in &scenario.cases {
                let reason = lab.lacking(case);
                if let Some(reason) = &reason {
                    let other = match case.setup.only_simulated() {
                        Some(_) => "use --runtime sim",
                        None => "use --runtime docker",
                    };
                    assert!(reason.ends_with(other), "{reason}");
                }
                let words = format!("{name} {}", case.name);
                let topology = case.setup.topology.as_str();
                let programs = ["redis", "redlock", "etcd", "postgres", "mariadb"];
                if !programs.iter().any(|program| topology.starts_with(program)) {
                    assert!(reason.is_some(), "{words}");
                } else if reason.is_some() {
                    lacking.push(words);
                }
            }
        }
        assert_eq!(lacking, NOT_LOCALLY);
    }
}
