//! Removing one container, in whatever state it is.

use super::engine::{Engine, call, is_not_found};
use super::target::Target;
use crate::cluster::ClusterError;
use bollard::errors::Error;
use bollard::query_parameters::{RemoveContainerOptions, WaitContainerOptions};
use futures_util::StreamExt;

impl Target {
    /// With all that it has stored; what is gone is fine.
    pub async fn discard(&self) -> Result<(), ClusterError> {
        remove_container(&self.engine, &self.container, &self.node).await
    }
}

/// By its id or its name; `called` is for people. Returns when it is gone, whoever
/// removed it.
pub async fn remove_container(
    engine: &Engine,
    container: &str,
    called: &str,
) -> Result<(), ClusterError> {
    let what = format!("remove {called}");
    // `force` kills it, frozen or not; `v` takes its anonymous volumes along.
    let options = RemoveContainerOptions {
        force: true,
        v: true,
        ..Default::default()
    };
    let remove = async {
        let removed = engine.docker().remove_container(container, Some(options));
        match removed.await {
            Err(error) if is_under_way(&error) => await_removal(engine, container).await,
            other => other,
        }
    };
    let _turn = engine.turn().await?;
    call(&what, gone_is_fine(remove)).await
}

/// Somebody else (a second sweep, `docker rm`) may have been faster.
pub async fn gone_is_fine(remove: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
    match remove.await {
        Err(error) if is_not_found(&error) => Ok(()),
        other => other,
    }
}

async fn await_removal(engine: &Engine, name: &str) -> Result<(), Error> {
    let options = WaitContainerOptions {
        condition: "removed".to_owned(),
    };
    let mut waiting = engine.docker().wait_container(name, Some(options));
    match waiting.next().await {
        // The exit code of what was removed is nobody's concern.
        Some(Err(Error::DockerContainerWaitError { .. }) | Ok(_)) | None => Ok(()),
        Some(Err(error)) => Err(error),
    }
}

fn is_under_way(error: &Error) -> bool {
    matches!(
        error,
        Error::DockerResponseServerError { status_code: 409, message }
            if message.contains("already in progress")
    )
}
