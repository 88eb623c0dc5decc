use super::LocalCluster;
use super::folder::{RunFolder, private_folder};
use super::programs::{Program, Programs, unstartable};
use super::{failed, sweep};
use crate::cluster::{Cluster, ClusterError, Image, Leftovers, Need, Runtime, Swept};
use crate::progress::Progress;
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Clusters as processes of this machine, their folders under one of its own.
pub struct LocalRuntime {
    root: PathBuf,
    /// What `prepare` found, for the clusters that come after it.
    programs: Mutex<Programs>,
}

impl LocalRuntime {
    pub fn new(root: &Path) -> Result<LocalRuntime, ClusterError> {
        let what = format!("make the folder {}", root.display());
        private_folder(root).map_err(failed(&what))?;
        Ok(LocalRuntime {
            root: root.to_owned(),
            programs: Mutex::default(),
        })
    }

    fn programs(&self) -> Programs {
        let programs = self.programs.lock();
        programs
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .clone()
    }
}

#[async_trait]
impl Runtime for LocalRuntime {
    fn about(&self) -> BTreeMap<String, String> {
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease");
        let kernel = kernel.unwrap_or_default().trim().to_owned();
        BTreeMap::from([
            ("runtime".to_owned(), "local".to_owned()),
            ("kernel".to_owned(), kernel),
            ("arch".to_owned(), std::env::consts::ARCH.to_owned()),
        ])
    }

    /// Images are programs here; one that is none is the affair of the case that
    /// needs it.
    async fn prepare(
        &self,
        images: &[Image],
        _progress: &dyn Progress,
    ) -> Result<BTreeMap<String, String>, ClusterError> {
        let mut found = self.programs();
        let mut ids = BTreeMap::new();
        for Image { name, .. } in images {
            let Some(program) = Program::of_image(name) else {
                continue;
            };
            let it = match found.0.entry(program) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => place.insert(program.find().await?),
            };
            let id = format!("{} at {}", it.version, it.path.display());
            ids.insert(name.clone(), id);
        }
        let mut programs = self.programs.lock();
        *programs
            .as_mut()
            .map_or_else(|poisoned| &mut **poisoned.get_mut(), |kept| &mut **kept) = found;
        Ok(ids)
    }

    async fn create(&self, run: &str, keep: bool) -> Result<Arc<dyn Cluster>, ClusterError> {
        let folder = RunFolder::create(&self.root, run, keep);
        let folder = folder.map_err(failed("make the folder of the run"))?;
        Ok(Arc::new(LocalCluster::new(folder, self.programs())))
    }

    /// Nothing of a dead run is left to be healed: its processes died with it, and
    /// the sweep ends what did not.
    async fn adopt(&self, run: &str) -> Result<Arc<dyn Cluster>, ClusterError> {
        let folder = RunFolder::of(&self.root, run);
        Ok(Arc::new(LocalCluster::new(folder, self.programs())))
    }

    async fn sweep(&self, which: Leftovers) -> Result<Swept, ClusterError> {
        let root = self.root.clone();
        let swept = tokio::task::spawn_blocking(move || sweep::sweep(&root, which)).await;
        swept.map_err(|error| failed("remove what runs left behind")(error.into()))
    }

    fn lacks(&self, need: Need<'_>) -> Option<String> {
        let takes_a_container = |what: &str| Some(format!("{what}; use --runtime docker"));
        match need {
            Need::Node(node) => unstartable(node),
            Need::Led(node) => match Program::of_image(&node.image) {
                Some(program) if !program.can_be_led() => takes_a_container(&format!(
                    "without containers no proxy can stand between {} and the others",
                    node.name
                )),
                _ => None,
            },
            Need::Freezer => {
                takes_a_container("only a container can be frozen; a process can be paused")
            }
            Need::Network => takes_a_container("only a container can be taken off the network"),
            Need::PacketFilters => takes_a_container("only a container's packets can be lost"),
        }
    }
}
