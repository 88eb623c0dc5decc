use super::labels::ObjectLabels;
use super::*;
use bollard::Docker;
use bollard::models::ContainerInspectResponse;

/// One container of a run, with its name at the engine and its name in scenarios. Its methods are
/// in `process.rs`, `network.rs`, `log.rs` and `removal.rs`.
#[derive(Clone)]
pub struct Target {
    pub engine: Engine,
    /// The engine's name for it.
    pub container: String,
    /// The name in scenarios and messages.
    pub node: Name,
    pub network: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maker {
    /// This process: nothing else has the names of its run.
    Ourselves,
    Anybody,
    SomebodyDead,
}

impl Target {
    pub fn docker(&self) -> &Docker {
        self.engine.docker()
    }

    /// Returns all that the engine knows about it; `what` completes "could not …".
    pub async fn inspect(&self, what: &str) -> ClusterResult<ContainerInspectResponse> {
        let inspect = self.docker().inspect_container(&self.container, None);
        let gone = || ClusterError::Gone {
            what: what.to_owned(),
        };
        call(what, if_there(inspect)).await?.ok_or_else(gone)
    }

    /// Returns the target by its id, once its labels say that it is this node of that run. A
    /// container with a name like ours that is not ours must not be touched.
    pub async fn labelled(self, run: &Name, maker: Maker) -> ClusterResult<Target> {
        if maker == Maker::Ourselves {
            return Ok(self);
        }
        let what = format!("find {} of run {run}", self.node);
        let found = self.inspect(&what).await?;
        let labels = found.config.and_then(|config| config.labels);
        let labels = labels.unwrap_or_default();
        let said = ObjectLabels(&labels);
        let failed = |reason: &str| {
            ClusterError::failed(what, format!("the container {} {reason}", self.container))
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
