use super::programs::{InstalledProgram, unstartable};
use super::*;
use crate::cluster::{Image, Leftovers, Need, Runtime, SweepResult};
use crate::progress::Progress;

/// Clusters as processes of this machine, whose folders are under one root.
pub struct LocalRuntime {
    root: PathBuf,
    /// The programs that `prepare` found, for the clusters that come after it.
    known: Mutex<ProgramCache>,
}

#[derive(Clone, Default)]
struct ProgramCache {
    programs: Programs,
    /// The programs that were not found, and why.
    missing: BTreeMap<Program, String>,
}

impl LocalRuntime {
    pub fn new(root: &Path) -> ClusterResult<LocalRuntime> {
        let what = format!("make the folder {}", root.display());
        private_folder(root).map_err(failed(&what))?;
        Ok(LocalRuntime {
            root: root.to_owned(),
            known: Mutex::default(),
        })
    }

    fn programs(&self) -> Programs {
        self.known.lock().programs.clone()
    }

    /// Finds a program. It is looked for once; a missing one stays missing for the runs of this
    /// process.
    async fn find(&self, program: Program) -> ClusterResult<InstalledProgram> {
        if let Some(found) = self.known.lock().programs.0.get(&program) {
            return Ok(found.clone());
        }
        let found = program.find().await;
        let mut known = self.known.lock();
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

    /// Finds the programs of the images. An image without a program concerns only the cases that
    /// need it.
    async fn prepare(
        &self,
        images: &[Image],
        _progress: &dyn Progress,
    ) -> ClusterResult<BTreeMap<String, String>> {
        let mut ids = BTreeMap::new();
        for Image { name, .. } in images {
            let Some(program) = Program::of_image(name) else {
                continue;
            };
            let it = self.find(program).await?;
            if program == Program::Given {
                continue;
            }
            let id = format!("{} at {}", it.version, it.path.display());
            ids.insert(name.clone(), id);
        }
        Ok(ids)
    }

    async fn create(&self, run: &Name, keep: bool) -> ClusterResult<Arc<dyn Cluster>> {
        let folder = RunFolder::create(&self.root, run, keep);
        let folder = folder.map_err(failed("make the folder of the run"))?;
        Ok(Arc::new(LocalCluster::new(folder, self.programs())))
    }

    /// A dead run has nothing left to heal: its processes died with it, and the sweep ends those
    /// that did not.
    async fn adopt(&self, run: &Name) -> ClusterResult<Arc<dyn Cluster>> {
        let folder = RunFolder::of(&self.root, run);
        Ok(Arc::new(LocalCluster::new(folder, self.programs())))
    }

    async fn sweep(&self, which: Leftovers) -> ClusterResult<SweepResult> {
        let root = self.root.clone();
        let swept = tokio::task::spawn_blocking(move || sweep::sweep(&root, which)).await;
        swept.map_err(|error| failed("remove what runs left behind")(error.into()))
    }

    fn lacks(&self, need: Need<'_>) -> Option<String> {
        let takes_a_container = |what: &str| Some(format!("{what}; use --runtime docker"));
        match need {
            Need::Node(node) => unstartable(node).or_else(|| {
                let program = Program::of_image(&node.image)?;
                self.known.lock().missing.get(&program).cloned()
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
            Need::AttachedContainer => {
                takes_a_container("containers of yours are not touched from local processes")
            }
            Need::PacketFilters => takes_a_container("only a container's packets can be lost"),
            // The process itself shows whether its clocks can be moved.
            Need::OwnClocks => None,
        }
    }
}
