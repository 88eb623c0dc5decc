//! Removes one container, in any state.

use super::engine::is_refusal;
use super::*;
use bollard::query_parameters::{RemoveContainerOptions, WaitContainerOptions};

impl Target {
    /// Removes it with its volumes; a missing container is fine.
    pub async fn discard(&self) -> ClusterResult {
        remove_container(&self.engine, &self.container, &self.node).await
    }
}

/// Removes a container by its id or its name; `called` is the name for people. Returns when it is
/// gone, whoever removed it.
pub async fn remove_container(engine: &Engine, container: &str, called: &str) -> ClusterResult {
    let what = format!("remove {called}");
    // `force` kills it, frozen or not; `v` removes its anonymous volumes too.
    let options = RemoveContainerOptions {
        force: true,
        v: true,
        ..Default::default()
    };
    let remove = async {
        let removed = engine.docker().remove_container(container, Some(options));
        match removed.await {
            Err(error) if is_refusal(&error, 409, "already in progress") => {
                await_removal(engine, container).await
            }
            other => other,
        }
    };
    let _turn = engine.turn().await?;
    call(&what, gone_is_fine(remove)).await
}

/// Ignores that the object is gone: a second sweep or `docker rm` may have been faster.
pub async fn gone_is_fine(remove: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
    if_there(remove).await.map(Option::unwrap_or_default)
}

async fn await_removal(engine: &Engine, name: &str) -> Result<(), Error> {
    let options = WaitContainerOptions {
        condition: "removed".to_owned(),
    };
    let mut waiting = engine.docker().wait_container(name, Some(options));
    match waiting.next().await {
        // The exit code of a removed container does not matter.
        Some(Err(Error::DockerContainerWaitError { .. }) | Ok(_)) | None => Ok(()),
        Some(Err(error)) => Err(error),
    }
}
