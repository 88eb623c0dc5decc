//! This program in a helper container beside any container: it is in the pid namespace of that
//! container, whose first process is process 1 there, and may trace it.

use super::process::is_local;
use super::*;
use crate::cluster::Shared;
use uuid::Uuid;

#[derive(Clone, Debug)]
pub struct RunningContainer {
    pub id: String,
    pub name: String,
    /// Its first process on this very machine, if it can be reached from here.
    pub local_pid: Option<i32>,
}

/// Finds a container by its name or id; it has to run.
pub async fn find_running(engine: &Engine, container: &str) -> ClusterResult<RunningContainer> {
    let what = format!("find the container {container}");
    let inspect = engine.docker().inspect_container(container, None);
    let found = call(&what, if_there(inspect)).await?.unwrap_or_default();
    let state = found.state.unwrap_or_default();
    let pid = state.pid.and_then(|pid| i32::try_from(pid).ok());
    match (found.id, pid) {
        (Some(id), Some(pid)) if pid > 0 => Ok(RunningContainer {
            local_pid: is_local(pid, &id).then_some(pid),
            id,
            name: container.to_owned(),
        }),
        _ => Err(ClusterError::missing(
            format!("a running container `{container}`"),
            "`docker ps` lists those that run",
        )),
    }
}

/// Runs this program, from its image, with arguments beside a container; returns its exit code and
/// what it printed. The helper is removed on every way out, and by the next sweep if this process
/// is killed.
pub async fn run(
    engine: &Engine,
    beside: &RunningContainer,
    image: String,
    arguments: Vec<String>,
) -> ClusterResult<(i64, ContainerOutput)> {
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
    let body = container::body(image, arguments, labels.for_node(&labels.run), false);
    let body = helper::beside(Shared::Processes, &beside.id, body);
    let what = format!("run a helper beside {}", beside.name);
    // Spawned, so that it goes on to its removal even if nobody waits any more.
    let work = tokio::spawn(async move {
        container::create(&target, body).await?;
        helper::run_and_remove(&target).await
    });
    let ended = work.await;
    let ended = ended.unwrap_or_else(|error| Err(ClusterError::failed(what.as_str(), error)))?;
    match ended.code {
        Some(code) => Ok((code, ended.printed)),
        None => Err(ClusterError::failed(what, "somebody removed it")),
    }
}
