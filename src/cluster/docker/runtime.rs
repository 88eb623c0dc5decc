use super::images::{self, ImageIds};
use super::sweep::{self, Leftovers};
use super::{DockerCluster, Engine};
use crate::cluster::{Cluster, ClusterError, Runtime, Topology};
use crate::progress::Progress;
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Clusters on one Docker Engine.
pub struct DockerRuntime {
    engine: Engine,
    /// What `prepare` found, for the clusters that come after it.
    images: Mutex<ImageIds>,
}

impl DockerRuntime {
    pub async fn connect() -> Result<DockerRuntime, ClusterError> {
        Ok(DockerRuntime {
            engine: Engine::connect().await?,
            images: Mutex::default(),
        })
    }

    fn images(&self) -> ImageIds {
        let images = self.images.lock();
        images
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .clone()
    }
}

#[async_trait]
impl Runtime for DockerRuntime {
    async fn prepare(
        &self,
        topology: &Topology,
        progress: &dyn Progress,
    ) -> Result<BTreeMap<String, String>, ClusterError> {
        let ids = images::ensure(&self.engine, [topology], progress).await?;
        let about = &self.engine.about;
        let mut found = BTreeMap::from([
            ("runtime".to_owned(), "docker".to_owned()),
            ("docker".to_owned(), about.version.clone()),
            ("docker_api".to_owned(), about.api.clone()),
            ("kernel".to_owned(), about.kernel.clone()),
            ("arch".to_owned(), about.arch.clone()),
        ]);
        found.extend(
            ids.iter()
                .map(|(name, id)| (format!("image {name}"), id.clone())),
        );
        let mut images = self.images.lock();
        images
            .as_mut()
            .unwrap_or_else(|poisoned| poisoned.get_mut())
            .extend(ids);
        Ok(found)
    }

    async fn create(&self, run: &str, keep: bool) -> Result<Arc<dyn Cluster>, ClusterError> {
        let cluster = DockerCluster::create(&self.engine, self.images(), run, keep).await?;
        Ok(Arc::new(cluster))
    }

    async fn sweep(&self) -> Result<Vec<String>, ClusterError> {
        sweep::sweep(&self.engine, Leftovers::OfDeadRuns).await
    }
}
