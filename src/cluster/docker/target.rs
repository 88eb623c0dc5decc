use super::engine::{Engine, call, is_not_found};
use crate::cluster::ClusterError;
use crate::model::Name;
use bollard::Docker;
use bollard::models::ContainerInspectResponse;

/// One container of a run, under the names that it has on both sides. What can
/// be done with it is in `process.rs`, `network.rs`, `log.rs` and `removal.rs`.
#[derive(Clone)]
pub struct Target {
    pub engine: Engine,
    /// What the engine calls it.
    pub container: String,
    /// What scenarios and messages call it.
    pub node: Name,
    /// The run's network.
    pub network: String,
}

impl Target {
    pub fn docker(&self) -> &Docker {
        self.engine.docker()
    }

    /// All that the engine knows about it; `what` completes "could not …".
    pub async fn inspect(&self, what: &str) -> Result<ContainerInspectResponse, ClusterError> {
        let inspected = async {
            match self.docker().inspect_container(&self.container, None).await {
                Err(error) if is_not_found(&error) => Ok(None),
                other => other.map(Some),
            }
        };
        let gone = || ClusterError::Gone {
            what: what.to_owned(),
        };
        call(what, inspected).await?.ok_or_else(gone)
    }
}
