//! The journal: a list of everything that must be undone if this process is killed. It is on
//! disk before each fault.
//!
//! The next run removes the containers of a dead run, and their faults with them. Containers
//! that were to be kept stay, and must not stay frozen.

use super::clockmaker::clockmaker_of;
use super::guest_debt::GuestDebt;
use super::links::{control, failed};
use super::packet_filter::{CLEAR, filter_of};
use super::*;
use crate::clock::Deed;
use crate::cluster::{FoundServer, NodeSpec, Owner, Runtime, Signal};
use bounded_io::files::{self, Links};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// A journal that was begun less than this ago may not name its owner yet.
const UNFINISHED_FOR: Duration = Duration::from_secs(60);

/// Something that a fault leaves behind in a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "undo", rename_all = "snake_case")]
pub enum Debt {
    Continue {
        node: Name,
    },
    Thaw {
        node: Name,
    },
    Connect {
        node: Name,
    },
    Filters {
        node: Name,
    },
    Clock {
        node: Name,
    },
    /// Every toxic of this source's proxies.
    Links {
        source: Name,
    },
    /// An attached server that was ended.
    Start {
        node: Name,
    },
    /// Something at an attached server, which is asked itself.
    Guest(GuestDebt),
}

impl Debt {
    fn container(&self) -> Option<Name> {
        match self {
            Debt::Continue { node }
            | Debt::Thaw { node }
            | Debt::Connect { node }
            | Debt::Filters { node }
            | Debt::Start { node }
            | Debt::Clock { node } => Some(node.clone()),
            Debt::Links { source } => Some(proxy_of(source)),
            Debt::Guest(_) => None,
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Head {
        run: Name,
        owner: String,
        /// The attached servers whose processes may be owed something.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        attached: BTreeMap<Name, FoundServer>,
    },
    Owed {
        id: u32,
        debts: Vec<Debt>,
    },
    Paid {
        paid: u32,
    },
}

/// The journal of one run, which is one file.
pub struct Journal {
    /// None if nothing that is done outlives this process.
    path: Option<PathBuf>,
    run: Name,
    attached: BTreeMap<Name, FoundServer>,
    /// The file is opened with the first debt.
    file: Mutex<Option<File>>,
}

impl Journal {
    pub fn new(folder: &Path, run: &Name) -> Journal {
        Journal {
            path: Some(folder.join(format!("{run}.jsonl"))),
            run: run.clone(),
            ..Journal::of_nothing()
        }
    }

    /// Makes a journal for a cluster that ends with this process, whatever is owed.
    pub fn of_nothing() -> Journal {
        Journal {
            path: None,
            run: Name::of_id(Uuid::nil()),
            attached: BTreeMap::new(),
            file: Mutex::new(None),
        }
    }

    /// Names the attached servers, so that another process finds them.
    pub fn with_attached(mut self, attached: BTreeMap<Name, FoundServer>) -> Journal {
        self.attached = attached;
        self
    }

    /// Returns when the debt is on disk: before that the fault must not be injected.
    pub fn owe(&self, id: u32, debts: &[Debt]) -> Proof {
        let Some(path) = self.path.as_ref().filter(|_| !debts.is_empty()) else {
            return Ok(());
        };
        let debts = debts.to_vec();
        let written = self.write(path, &Line::Owed { id, debts });
        written.map_err(|error| UnprovenReason::NotJournaled {
            path: path.display().to_string(),
            error: error.to_string(),
        })
    }

    pub fn paid(&self, id: u32) {
        // This may get lost: it does no damage to undo a fault twice.
        let _ = self.write_if_open(&Line::Paid { paid: id });
    }

    /// Removes the journal, because nothing is owed any more.
    pub fn close(&self) {
        if let (Some(_), Some(path)) = (self.file.lock().take(), &self.path) {
            let _ = fs::remove_file(path);
        }
    }

    fn write(&self, path: &Path, line: &Line) -> io::Result<()> {
        let mut file = self.file.lock();
        let file = match &mut *file {
            Some(file) => file,
            none => {
                if let Some(folder) = path.parent() {
                    files::private_folder(folder)?;
                }
                let mut file = files::append_private(path)?;
                let head = Line::Head {
                    run: self.run.clone(),
                    owner: Owner::current().to_label(),
                    attached: self.attached.clone(),
                };
                append(&mut file, &head)?;
                none.insert(file)
            }
        };
        append(file, line)
    }

    fn write_if_open(&self, line: &Line) -> io::Result<()> {
        match &mut *self.file.lock() {
            Some(file) => append(file, line),
            None => Ok(()),
        }
    }
}

fn append(file: &mut File, line: &Line) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    file.write_all(&text)?;
    file.sync_data()
}

/// The results of healing after dead runs, in words.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Healed {
    pub healed: Vec<String>,
    /// Faults that are still active, and why; the next run tries again.
    pub unhealed: Vec<String>,
}

/// Undoes faults of runs whose owners are certainly dead.
pub async fn heal_leftovers(folder: &Path, runtime: &dyn Runtime) -> Healed {
    let mut all = Healed::default();
    let Ok(entries) = fs::read_dir(folder) else {
        return all;
    };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let unpaid = match Left::read(&path) {
            Ok(Some(left)) => left.heal(runtime, &mut all.healed).await,
            Ok(None) if was_never_begun(&path) => Vec::new(),
            Ok(None) => continue,
            Err(reason) => vec![format!(
                "cannot read the journal {}: {reason}; look at it, and remove it",
                path.display()
            )],
        };
        if unpaid.is_empty() {
            let _ = fs::remove_file(&path);
        }
        all.unhealed.extend(unpaid);
    }
    all
}

/// Returns whether the container has ended, or somebody has removed it and the fault with it.
async fn is_gone(cluster: &dyn Cluster, debt: &Debt) -> bool {
    let Some(container) = debt.container() else {
        return false;
    };
    match cluster.state(&container).await {
        // A server that is to be started has ended.
        Ok(state) => !state.running && !matches!(debt, Debt::Start { .. }),
        Err(ClusterError::Gone { .. }) => true,
        Err(_) => false,
    }
}

/// The debts that are left in the journal of a dead run.
#[derive(Debug, PartialEq, Eq)]
struct Left {
    run: Name,
    attached: BTreeMap<Name, FoundServer>,
    debts: Vec<Debt>,
}

impl Left {
    /// Returns None for a run that lives, or has only just begun. A line that does not belong in a
    /// journal is a reason to believe none of its lines.
    fn read(path: &Path) -> Result<Option<Left>, String> {
        let text = match files::read_text(path, Links::Refuse, files::NOTE) {
            // Another process has just paid the debts and removed the journal.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(|error| error.to_string())?,
        };
        // The fault of a torn last line was never injected.
        let whole = text
            .split_inclusive('\n')
            .filter_map(|line| line.strip_suffix('\n'));
        let lines = whole.map(serde_json::from_str::<Line>);
        let lines: Result<Vec<Line>, _> = lines.collect();
        let mut lines = lines.map_err(|error| error.to_string())?.into_iter();
        let (run, owner, attached) = match lines.next() {
            Some(Line::Head {
                run,
                owner,
                attached,
            }) => (run, owner, attached),
            None => return Ok(None),
            Some(_) => return Err("it does not say whose it is".to_owned()),
        };
        let owner = Owner::from_label(&owner).ok_or("it does not say whose it is")?;
        if !owner.is_certainly_dead() {
            return Ok(None);
        }
        let mut owed: Vec<(u32, Vec<Debt>)> = Vec::new();
        for line in lines {
            match line {
                Line::Owed { id, debts } => owed.push((id, debts)),
                Line::Paid { paid } => owed.retain(|(id, _)| *id != paid),
                Line::Head { .. } => {}
            }
        }
        let debts = owed.into_iter().rev().flat_map(|(_, debts)| debts);
        Ok(Some(Left {
            run,
            attached,
            debts: debts.collect(),
        }))
    }

    /// Returns why some debts could not be paid.
    async fn heal(&self, runtime: &dyn Runtime, healed: &mut Vec<String>) -> Vec<String> {
        let run = &self.run;
        if self.debts.is_empty() {
            return Vec::new();
        }
        let could_not = |reason: String| format!("could not heal run {run}: {reason}");
        let cluster = match runtime.adopt(run).await {
            Ok(cluster) => cluster,
            Err(error) => return vec![could_not(error.to_string())],
        };
        for (name, server) in &self.attached {
            if let Err(error) = cluster.attach(name, server).await {
                return vec![could_not(error.to_string())];
            }
        }
        let mut unpaid = Vec::new();
        for debt in &self.debts {
            match pay(cluster.as_ref(), debt).await {
                Ok(()) => healed.push(format!("{} of run {run}", words(debt))),
                Err(_) if is_gone(cluster.as_ref(), debt).await => {}
                Err(reason) => unpaid.push(could_not(reason.to_string())),
            }
        }
        unpaid
    }
}

/// Returns whether the run was killed before it wrote anything: it did nothing and owes nothing.
fn was_never_begun(path: &Path) -> bool {
    let Ok(about) = fs::symlink_metadata(path) else {
        return false;
    };
    let written = about.modified().ok().and_then(|at| at.elapsed().ok());
    let is_old = written.is_some_and(|age| age > UNFINISHED_FOR);
    about.is_file() && about.len() == 0 && is_old
}

async fn pay(cluster: &dyn Cluster, debt: &Debt) -> Proof {
    match debt {
        Debt::Continue { node } => cluster.signal(node, Signal::Continue).await?,
        Debt::Thaw { node } => cluster.thaw(node).await?,
        Debt::Connect { node } => cluster.connect(node).await?,
        Debt::Filters { node } => {
            let command = ["sh", "-c", CLEAR].map(str::to_owned).to_vec();
            // An earlier helper of the same name may still be there.
            cluster.discard(&filter_of(node)).await?;
            let helper = packet_filter::helper(node, command);
            cluster.run_helper(&helper).await?;
        }
        Debt::Clock { node } => {
            cluster.discard(&clockmaker_of(node)).await?;
            clockmaker::order(cluster, node, Deed::Undo).await?;
        }
        Debt::Links { source } => {
            let toxiproxy = control(cluster, &proxy_of(source)).await?;
            let toxiproxy = toxiproxy.map_err(failed)?;
            toxiproxy.reset().await.map_err(failed)?;
        }
        Debt::Start { node } => {
            let node = NodeSpec::new(node.clone(), "", Vec::new());
            cluster.start(&node).await?;
        }
        Debt::Guest(debt) => debt.pay().await?,
    }
    Ok(())
}

fn words(debt: &Debt) -> String {
    match debt {
        Debt::Continue { node } => format!("continued {node}"),
        Debt::Thaw { node } => format!("thawed {node}"),
        Debt::Connect { node } => format!("put {node} on its network again"),
        Debt::Filters { node } => format!("cleared the packet filter of {node}"),
        Debt::Clock { node } => format!("put the clock of {node} right"),
        Debt::Links { source } => format!("healed the links of {source}"),
        Debt::Start { node } => format!("started {node} again"),
        Debt::Guest(debt) => debt.words(),
    }
}

#[cfg(test)]
mod tests;
