//! What has to be undone should we be killed, on disk before each fault.
//!
//! Containers of a dead run are removed by the next one, and their faults with
//! them; but those that were to be kept stay, and must not stay frozen.

use super::links::control;
use super::names::proxy_of;
use super::packet_filter::{self, CLEAR};
use super::{clockmaker, lock};
use crate::cluster::{Cluster, ClusterError, Owner, Runtime, Signal};
use crate::model::Name;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

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
    /// The node that it is in.
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
    /// Opened with the first debt.
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

    /// Returns when it is on disk: without that the fault must not be.
    pub fn owe(&self, id: u32, debts: &[Debt]) -> Result<(), String> {
        if debts.is_empty() {
            return Ok(());
        }
        let debts = debts.to_vec();
        self.write(&Line::Owed { id, debts }).map_err(|error| {
            let path = self.path.display();
            format!("what would have to be undone cannot be written to {path}: {error}")
        })
    }

    pub fn paid(&self, id: u32) {
        // Undone twice does no harm, so this may get lost.
        let _ = self.write_if_open(&Line::Paid { paid: id });
    }

    /// Nothing is owed any more.
    pub fn close(&self) {
        if lock(&self.file).take().is_some() {
            let _ = fs::remove_file(&self.path);
        }
    }

    fn write(&self, line: &Line) -> std::io::Result<()> {
        let mut file = lock(&self.file);
        let file = match &mut *file {
            Some(file) => file,
            none => {
                if let Some(folder) = self.path.parent() {
                    fs::create_dir_all(folder)?;
                }
                let mut options = OpenOptions::new();
                let mut file = options.create(true).append(true).open(&self.path)?;
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

    fn write_if_open(&self, line: &Line) -> std::io::Result<()> {
        match &mut *lock(&self.file) {
            Some(file) => append(file, line),
            None => Ok(()),
        }
    }
}

fn append(file: &mut File, line: &Line) -> std::io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    file.write_all(&text)?;
    file.sync_data()
}

/// Undoes what runs left behind whose owners are certainly dead; returns what
/// was undone, in words.
pub async fn heal_leftovers(folder: &Path, runtime: &dyn Runtime) -> Vec<String> {
    let mut healed = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else {
        return healed;
    };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let Some(left) = Left::read(&path) else {
            continue;
        };
        let Ok(cluster) = runtime.adopt(&left.run).await else {
            continue;
        };
        let mut unpaid = 0;
        for debt in &left.debts {
            match pay(cluster.as_ref(), debt).await {
                Ok(()) => healed.push(format!("{} of run {}", words(debt), left.run)),
                Err(_) if is_gone(cluster.as_ref(), debt).await => {}
                Err(reason) => {
                    unpaid += 1;
                    healed.push(format!("could not heal run {}: {reason}", left.run));
                }
            }
        }
        // What is still owed is tried again by the next one.
        if unpaid == 0 {
            let _ = fs::remove_file(&path);
        }
    }
    healed
}

/// Somebody has removed the container, and the fault with it, or it has ended.
async fn is_gone(cluster: &dyn Cluster, debt: &Debt) -> bool {
    match cluster.state(&debt.container()).await {
        Ok(state) => !state.running,
        Err(ClusterError::Gone { .. }) => true,
        Err(_) => false,
    }
}

/// What the journal of a dead run still owes.
struct Left {
    run: Name,
    debts: Vec<Debt>,
}

impl Left {
    /// None for a run that lives, and for what is no journal.
    fn read(path: &Path) -> Option<Left> {
        let text = fs::read_to_string(path).ok()?;
        let mut lines = text.lines().map(serde_json::from_str::<Line>);
        let Some(Ok(Line::Head { run, owner })) = lines.next() else {
            return None;
        };
        if !Owner::from_label(&owner)?.is_certainly_dead() {
            return None;
        }
        let mut owed: Vec<(u32, Vec<Debt>)> = Vec::new();
        // A torn last line was not followed by its fault.
        for line in lines.map_while(Result::ok) {
            match line {
                Line::Owed { id, debts } => owed.push((id, debts)),
                Line::Paid { paid } => owed.retain(|(id, _)| *id != paid),
                Line::Head { .. } => {}
            }
        }
        let debts = owed.into_iter().rev().flat_map(|(_, debts)| debts);
        Some(Left {
            run,
            debts: debts.collect(),
        })
    }
}

async fn pay(cluster: &dyn Cluster, debt: &Debt) -> Result<(), String> {
    let text = |error: ClusterError| error.to_string();
    match debt {
        Debt::Continue { node } => cluster.signal(node, Signal::Continue).await.map_err(text),
        Debt::Thaw { node } => cluster.thaw(node).await.map_err(text),
        Debt::Connect { node } => cluster.connect(node).await.map_err(text),
        Debt::Filters { node } => {
            let command = ["sh", "-c", CLEAR].map(str::to_owned).to_vec();
            // Its predecessor of the same name may still be there.
            cluster
                .discard(&super::names::filter_of(node))
                .await
                .map_err(text)?;
            let helper = packet_filter::helper(node, command);
            cluster.run_helper(&helper).await.map(drop).map_err(text)
        }
        Debt::Clock { node } => {
            let undone = clockmaker::order(cluster, node, clockmaker::Order::Undo);
            undone.await.map(drop)
        }
        Debt::Links { source } => {
            let toxiproxy = control(cluster, &proxy_of(source)).await.map_err(text)?;
            let toxiproxy = toxiproxy.map_err(|error| error.to_string())?;
            toxiproxy.reset().await.map_err(|error| error.to_string())
        }
    }
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
mod tests {
    use super::*;

    fn thaw(node: &str) -> Debt {
        let node = node.into();
        Debt::Thaw { node }
    }

    #[test]
    fn a_journal_says_what_is_still_owed_and_is_gone_when_nothing_is() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::new(folder.path(), &"r1".into());
        journal.owe(1, &[thaw("a")]).unwrap();
        journal.owe(2, &[thaw("b")]).unwrap();
        journal.paid(1);
        let path = folder.path().join("r1.jsonl");
        assert!(Left::read(&path).is_none(), "its owner lives");

        // The same, written by somebody who has died.
        let text = fs::read_to_string(&path).unwrap();
        let (_, rest) = text.split_once('\n').unwrap();
        let label = Owner::current().to_label();
        let own_pid = format!("/{}/", std::process::id());
        let head = Line::Head {
            run: "r1".into(),
            owner: label.replace(&own_pid, "/2147483647/"),
        };
        let head = serde_json::to_string(&head).unwrap();
        fs::write(&path, format!("{head}\n{rest}{{\"id\":3,\"deb")).unwrap();
        assert_eq!(Left::read(&path).unwrap().debts, [thaw("b")]);

        journal.close();
        assert!(!path.exists());
    }
}
