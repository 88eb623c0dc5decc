use super::LocalCluster;
use super::folder::RunFolder;
use super::programs::{Found, Program, Programs, unstartable};
use super::{failed, sweep};
use crate::cluster::{Cluster, ClusterError, Image, Leftovers, Need, Runtime, Swept};
use crate::files::private_folder;
use crate::model::Name;
use crate::progress::Progress;
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

/// Clusters as processes of this machine, their folders under one of its own.
pub struct LocalRuntime {
    root: PathBuf,
    /// What `prepare` found, for the clusters that come after it.
    known: Mutex<Known>,
}

#[derive(Clone, Default)]
struct Known {
    programs: Programs,
    /// What was looked for in vain, and why.
    missing: BTreeMap<Program, String>,
}

impl LocalRuntime {
    pub fn new(root: &Path) -> Result<LocalRuntime, ClusterError> {
        let what = format!("make the folder {}", root.display());
        private_folder(root).map_err(failed(&what))?;
        Ok(LocalRuntime {
            root: root.to_owned(),
            known: Mutex::default(),
        })
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        let known = self.known.lock();
        known.unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn programs(&self) -> Programs {
        self.known().programs.clone()
    }

    /// Looked for once; one that is missing stays so for the runs of this process.
    async fn find(&self, program: Program) -> Result<Found, ClusterError> {
        if let Some(found) = self.known().programs.0.get(&program) {
            return Ok(found.clone());
        }
        let found = program.find().await;
        let mut known = self.known();
        match &found {
            Ok(found) => drop(known.programs.0.insert(program, found.clone())),
            Err(error) => {
                let reason = error.to_string().replace('\n', "; ");
                known.missing.insert(program, reason);
            }
        }
        found
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
        let mut ids = BTreeMap::new();
        for Image { name, .. } in images {
            let Some(program) = Program::of_image(name) else {
                continue;
            };
            let it = self.find(program).await?;
            let id = format!("{} at {}", it.version, it.path.display());
            ids.insert(name.clone(), id);
        }
        Ok(ids)
    }

    async fn create(&self, run: &Name, keep: bool) -> Result<Arc<dyn Cluster>, ClusterError> {
        let folder = RunFolder::create(&self.root, run, keep);
        let folder = folder.map_err(failed("make the folder of the run"))?;
        Ok(Arc::new(LocalCluster::new(folder, self.programs())))
    }

    /// Nothing of a dead run is left to be healed: its processes died with it, and
    /// the sweep ends what did not.
    async fn adopt(&self, run: &Name) -> Result<Arc<dyn Cluster>, ClusterError> {
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
            Need::Node(node) => unstartable(node).or_else(|| {
                let program = Program::of_image(&node.image)?;
                self.known().missing.get(&program).cloned()
            }),
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
