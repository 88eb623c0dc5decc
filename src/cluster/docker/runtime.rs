use super::elsewhere;
use super::images::{self, ImageIds};
use super::sweep;
use super::target::Maker;
use super::{DockerCluster, Engine};
use crate::cluster::{Cluster, ClusterError, Image, Leftovers, Runtime, Swept};
use crate::model::Name;
use crate::progress::Progress;
use async_trait::async_trait;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// Clusters on one Docker Engine.
pub struct DockerRuntime {
    engine: Engine,
    /// Held while images are made.
    images_lock: PathBuf,
    /// What `prepare` found, for the clusters that come after it.
    images: Mutex<ImageIds>,
}

impl DockerRuntime {
    pub async fn connect(images_lock: PathBuf) -> Result<DockerRuntime, ClusterError> {
        Ok(DockerRuntime {
            engine: Engine::connect().await?,
            images_lock,
            images: Mutex::default(),
        })
    }

    /// Every run of which there is anything, alive or not.
    pub async fn runs(&self) -> Result<BTreeSet<Name>, ClusterError> {
        sweep::runs(&self.engine).await
    }

    /// The cluster of a run that stands, whoever made it.
    pub fn of_run(&self, run: &Name) -> Arc<dyn Cluster> {
        Arc::new(self.made_by(Maker::Anybody, run))
    }

    fn made_by(&self, maker: Maker, run: &Name) -> DockerCluster {
        DockerCluster::of_run(&self.engine, self.images(), run, maker)
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
    fn about(&self) -> BTreeMap<String, String> {
        let about = &self.engine.about;
        BTreeMap::from([
            ("runtime".to_owned(), "docker".to_owned()),
            ("docker".to_owned(), about.version.clone()),
            ("docker_api".to_owned(), about.api.clone()),
            ("kernel".to_owned(), about.kernel.clone()),
            ("arch".to_owned(), about.arch.clone()),
        ])
    }

    async fn prepare(
        &self,
        images: &[Image],
        progress: &dyn Progress,
    ) -> Result<ImageIds, ClusterError> {
        elsewhere::check_kernel(&self.engine)?;
        let ids = images::ensure(&self.engine, images, &self.images_lock, progress).await?;
        elsewhere::check_ports(&self.engine, &ids).await?;
        let mut images = self.images.lock();
        images
            .as_mut()
            .unwrap_or_else(|poisoned| poisoned.get_mut())
            .extend(ids.clone());
        Ok(ids)
    }

    async fn create(&self, run: &Name, keep: bool) -> Result<Arc<dyn Cluster>, ClusterError> {
        let cluster = DockerCluster::create(&self.engine, self.images(), run, keep).await?;
        Ok(Arc::new(cluster))
    }

    async fn adopt(&self, run: &Name) -> Result<Arc<dyn Cluster>, ClusterError> {
        Ok(Arc::new(self.made_by(Maker::SomebodyDead, run)))
    }

    async fn sweep(&self, which: Leftovers) -> Result<Swept, ClusterError> {
        sweep::sweep(&self.engine, which).await
    }
}
