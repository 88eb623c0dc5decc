//! The journal: a list of everything that must be undone if this process is killed. It is on
//! disk before each fault.
//!
//! The next run removes the containers of a dead run, and their faults with them. Containers
//! that were to be kept stay, and must not stay frozen.

use super::clockmaker::clockmaker_of;
use super::links::{control, failed};
use super::packet_filter::{CLEAR, filter_of};
use super::*;
use crate::clock::Deed;
use crate::cluster::{Owner, Runtime, Signal};
use bounded_io::files::{self, Links};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

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
}

impl Debt {
    fn container(&self) -> Name {
        match self {
            Debt::Continue { node }
            | Debt::Thaw { node }
            | Debt::Connect { node }
            | Debt::Filters { node }
            | Debt::Clock { node } => node.clone(),
            Debt::Links { source } => proxy_of(source),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Head { run: Name, owner: String },
    Owed { id: u32, debts: Vec<Debt> },
    Paid { paid: u32 },
}

/// The journal of one run, which is one file.
pub struct Journal {
    path: PathBuf,
    run: Name,
    /// The file is opened with the first debt.
    file: Mutex<Option<File>>,
}

impl Journal {
    pub fn new(folder: &Path, run: &Name) -> Journal {
        Journal {
            path: folder.join(format!("{run}.jsonl")),
            run: run.clone(),
            file: Mutex::new(None),
        }
    }

    /// Returns when the debt is on disk: before that the fault must not be injected.
    pub fn owe(&self, id: u32, debts: &[Debt]) -> Proof {
        if debts.is_empty() {
            return Ok(());
        }
        let debts = debts.to_vec();
        let written = self.write(&Line::Owed { id, debts });
        written.map_err(|error| UnprovenReason::NotJournaled {
            path: self.path.display().to_string(),
            error: error.to_string(),
        })
    }

    pub fn paid(&self, id: u32) {
        // This may get lost: it does no damage to undo a fault twice.
        let _ = self.write_if_open(&Line::Paid { paid: id });
    }

    /// Removes the journal, because nothing is owed any more.
    pub fn close(&self) {
        if self.file.lock().take().is_some() {
            let _ = fs::remove_file(&self.path);
        }
    }

    fn write(&self, line: &Line) -> io::Result<()> {
        let mut file = self.file.lock();
        let file = match &mut *file {
            Some(file) => file,
            none => {
                if let Some(folder) = self.path.parent() {
                    files::private_folder(folder)?;
                }
                let mut file = files::append_private(&self.path)?;
                let head = Line::Head {
                    run: self.run.clone(),
                    owner: Owner::current().to_label(),
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
    match cluster.state(&debt.container()).await {
        Ok(state) => !state.running,
        Err(ClusterError::Gone { .. }) => true,
        Err(_) => false,
    }
}

/// The debts that are left in the journal of a dead run.
#[derive(Debug, PartialEq, Eq)]
struct Left {
    run: Name,
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
        let (run, owner) = match lines.next() {
            Some(Line::Head { run, owner }) => (run, owner),
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
    }
}

#[cfg(test)]
mod tests;
