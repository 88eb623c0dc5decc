use super::*;
use crate::cluster::{COMMAND_IMAGE, Image, Leftovers, Need, Runtime, SweepResult};
use crate::progress::Progress;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

pub struct DockerRuntime {
    engine: Engine,
    /// Held while images are made.
    images_lock: PathBuf,
    /// The images that `prepare` found, for the clusters that come after it.
    images: Mutex<ImageIds>,
}

impl DockerRuntime {
    pub async fn connect(images_lock: PathBuf) -> ClusterResult<DockerRuntime> {
        Ok(DockerRuntime {
            engine: Engine::connect().await?,
            images_lock,
            images: Mutex::default(),
        })
    }

    /// Returns every run of which an object exists, alive or not.
    pub async fn runs(&self) -> ClusterResult<BTreeSet<Name>> {
        sweep::runs(&self.engine).await
    }

    /// Returns the cluster of an existing run, whoever made it.
    pub fn of_run(&self, run: &Name) -> Arc<dyn Cluster> {
        Arc::new(self.made_by(Maker::Anybody, run))
    }

    fn made_by(&self, maker: Maker, run: &Name) -> DockerCluster {
        DockerCluster::of_run(&self.engine, self.images(), run, maker)
    }

    fn images(&self) -> ImageIds {
        self.images.lock().clone()
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

    async fn prepare(&self, images: &[Image], progress: &dyn Progress) -> ClusterResult<ImageIds> {
        elsewhere::check_kernel(&self.engine)?;
        let ids = images::ensure(&self.engine, images, &self.images_lock, progress).await?;
        elsewhere::check_ports(&self.engine, &ids).await?;
        self.images.lock().extend(ids.clone());
        Ok(ids)
    }

    async fn create(&self, run: &Name, keep: bool) -> ClusterResult<Arc<dyn Cluster>> {
        let cluster = DockerCluster::create(&self.engine, self.images(), run, keep).await?;
        Ok(Arc::new(cluster))
    }

    async fn adopt(&self, run: &Name) -> ClusterResult<Arc<dyn Cluster>> {
        Ok(Arc::new(self.made_by(Maker::SomebodyDead, run)))
    }

    async fn sweep(&self, which: Leftovers) -> ClusterResult<SweepResult> {
        sweep::sweep(&self.engine, which).await
    }

    fn lacks(&self, need: Need<'_>) -> Option<String> {
        match need {
            Need::Node(node) if node.image == COMMAND_IMAGE => Some(
                "a command of this machine does not run in a container; use --runtime local, or name a folder with a Dockerfile".to_owned(),
            ),
            _ => None,
        }
    }
}
