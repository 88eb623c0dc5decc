//! This program in a helper container beside any container: in its pid
//! namespace, where its first process is process 1, and allowed to trace it.

use super::container::{self, Blueprint};
use super::engine::{Engine, call, is_not_found};
use super::helper::{self, Ended};
use super::labels::RunLabels;
use super::process::is_local;
use super::target::Target;
use crate::cluster::{ClusterError, Shared};
use crate::model::Name;
use uuid::Uuid;

/// A container as the engine knows it.
#[derive(Clone, Debug)]
pub struct Running {
    pub id: String,
    pub name: String,
    /// Its first process on this very machine, where it can be reached from here.
    pub local_pid: Option<i32>,
}

/// What a helper said, and how it ended.
#[derive(Debug)]
pub struct Helped {
    pub code: i64,
    pub stdout: String,
    pub stderr: String,
}

/// Finds a container by its name or id; it has to run.
pub async fn find_running(engine: &Engine, container: &str) -> Result<Running, ClusterError> {
    let what = format!("find the container {container}");
    let inspected = async {
        match engine.docker().inspect_container(container, None).await {
            Err(error) if is_not_found(&error) => Ok(None),
            other => other.map(Some),
        }
    };
    let found = call(&what, inspected).await?.unwrap_or_default();
    let state = found.state.unwrap_or_default();
    let pid = state.pid.and_then(|pid| i32::try_from(pid).ok());
    match (found.id, pid) {
        (Some(id), Some(pid)) if pid > 0 => Ok(Running {
            local_pid: is_local(pid, &id).then_some(pid),
            id,
            name: container.to_owned(),
        }),
        _ => Err(ClusterError::Missing {
            what: format!("a running container `{container}`"),
            remedy: "`docker ps` lists those that run".to_owned(),
        }),
    }
}

/// Runs this program, from its image, with arguments beside a container. The helper is removed
/// on every way out, and by the next sweep if this process is killed.
pub async fn run(
    engine: &Engine,
    beside: &Running,
    image: String,
    arguments: Vec<String>,
) -> Result<Helped, ClusterError> {
    let labels = RunLabels {
        run: Name::of_id(Uuid::new_v4()).behind("helper"),
        keep: false,
    };
    let target = Target {
        engine: engine.clone(),
        container: labels.container(&labels.run),
        node: labels.run.clone(),
        network: String::new(),
    };
    let blueprint = Blueprint {
        image,
        command: arguments,
        labels: labels.for_node(&labels.run),
        attached: false,
    };
    let body = helper::beside(Shared::Processes, &beside.id, blueprint.body());
    let what = format!("run a helper beside {}", beside.name);
    // Spawned, so that it goes on to its removal even if nobody waits any more.
    let work = tokio::spawn(async move {
        container::create(&target, body).await?;
        helper::run_and_remove(&target).await
    });
    let failed = |reason: String| ClusterError::Failed { what, reason };
    match work.await {
        Ok(ended) => {
            let Ended { code, printed } = ended?;
            Ok(Helped {
                code: code.ok_or_else(|| failed("somebody removed it".to_owned()))?,
                stdout: printed.stdout,
                stderr: printed.stderr,
            })
        }
        Err(error) => Err(failed(error.to_string())),
    }
}
