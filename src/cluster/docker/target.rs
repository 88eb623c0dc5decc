use super::engine::{Engine, call, is_not_found};
use super::labels::Said;
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

/// Who made the containers of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maker {
    /// Whoever asks: under the names of its run there is nothing else.
    Ourselves,
    Anybody,
    SomebodyDead,
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

    /// The same by its id, once its labels say that it is this node of that run. What is
    /// called like one of ours and is not, nobody may touch.
    pub async fn labelled(self, run: &Name, maker: Maker) -> Result<Target, ClusterError> {
        if maker == Maker::Ourselves {
            return Ok(self);
        }
        let what = format!("find {} of run {run}", self.node);
        let found = self.inspect(&what).await?;
        let labels = found.config.and_then(|config| config.labels);
        let labels = labels.unwrap_or_default();
        let said = Said(&labels);
        let failed = |reason: &str| ClusterError::Failed {
            what,
            reason: format!("the container {} {reason}", self.container),
        };
        if said.run() != Some(run.as_str()) || said.node() != Some(self.node.as_str()) {
            return Err(failed("does not say that it is this; it is left alone"));
        }
        if maker == Maker::SomebodyDead && !said.owner_is_certainly_dead() {
            return Err(failed("has an owner that may live; it is left alone"));
        }
        let container = found.id.unwrap_or_default();
        Ok(Target { container, ..self })
    }
}
