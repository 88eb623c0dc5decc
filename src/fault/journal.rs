//! What has to be undone should we be killed, on disk before each fault.
//!
//! Containers of a dead run are removed by the next one, and their faults with
//! them; but those that were to be kept stay, and must not stay frozen.

use super::links::control;
use super::names::{clockmaker_of, filter_of, proxy_of};
use super::packet_filter::{self, CLEAR};
use super::{clockmaker, lock};
use crate::clock::Deed;
use crate::cluster::{Cluster, ClusterError, Owner, Runtime, Signal};
use crate::files::{self, Links};
use crate::model::Name;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

/// A journal that has just been begun may not have said yet whose it is.
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

    fn write(&self, line: &Line) -> io::Result<()> {
        let mut file = lock(&self.file);
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
        match &mut *lock(&self.file) {
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

/// What became of the faults that dead runs left behind, in words.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Healed {
    pub healed: Vec<String>,
    /// What is still as the fault left it, and why; the next one tries again.
    pub unhealed: Vec<String>,
}

/// Undoes what runs left behind whose owners are certainly dead.
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

/// Somebody has removed the container, and the fault with it, or it has ended.
async fn is_gone(cluster: &dyn Cluster, debt: &Debt) -> bool {
    match cluster.state(&debt.container()).await {
        Ok(state) => !state.running,
        Err(ClusterError::Gone { .. }) => true,
        Err(_) => false,
    }
}

/// What the journal of a dead run still owes.
#[derive(Debug, PartialEq, Eq)]
struct Left {
    run: Name,
    debts: Vec<Debt>,
}

impl Left {
    /// None for a run that lives, or has only begun. A line that says something else
    /// than a journal may is a reason to believe none of them.
    fn read(path: &Path) -> Result<Option<Left>, String> {
        let text = match files::read_text(path, Links::Refuse, files::NOTE) {
            // Paid by somebody else as we looked.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(|error| error.to_string())?,
        };
        // A torn last line was not followed by its fault.
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

    /// Returns why some of it could not be paid.
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
                Err(reason) => unpaid.push(could_not(reason)),
            }
        }
        unpaid
    }
}

/// Its run was killed before it said anything: nothing was done, and nothing is owed.
fn was_never_begun(path: &Path) -> bool {
    let Ok(about) = fs::symlink_metadata(path) else {
        return false;
    };
    let written = about.modified().ok().and_then(|at| at.elapsed().ok());
    let is_old = written.is_some_and(|age| age > UNFINISHED_FOR);
    about.is_file() && about.len() == 0 && is_old
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
            cluster.discard(&filter_of(node)).await.map_err(text)?;
            let helper = packet_filter::helper(node, command);
            cluster.run_helper(&helper).await.map(drop).map_err(text)
        }
        Debt::Clock { node } => {
            cluster.discard(&clockmaker_of(node)).await.map_err(text)?;
            let undone = clockmaker::order(cluster, node, Deed::Undo);
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

    fn head_of_somebody_dead() -> String {
        let label = Owner::current().to_label();
        let own_pid = format!("/{}/", std::process::id());
        let head = Line::Head {
            run: "r1".into(),
            owner: label.replace(&own_pid, "/2147483647/"),
        };
        serde_json::to_string(&head).unwrap()
    }

    fn left(path: &Path) -> Left {
        Left::read(path).unwrap().unwrap()
    }

    #[test]
    fn a_journal_says_what_is_still_owed_and_is_gone_when_nothing_is() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::new(folder.path(), &"r1".into());
        journal.owe(1, &[thaw("a")]).unwrap();
        journal.owe(2, &[thaw("b")]).unwrap();
        journal.paid(1);
        let path = folder.path().join("r1.jsonl");
        assert_eq!(Left::read(&path), Ok(None), "its owner lives");

        // The same, written by somebody who has died.
        let text = fs::read_to_string(&path).unwrap();
        let (_, rest) = text.split_once('\n').unwrap();
        let head = head_of_somebody_dead();
        fs::write(&path, format!("{head}\n{rest}{{\"id\":3,\"deb")).unwrap();
        assert_eq!(left(&path).debts, [thaw("b")]);

        journal.close();
        assert!(!path.exists());
    }

    #[test]
    fn a_journal_is_for_this_user_alone() {
        use std::os::unix::fs::PermissionsExt;
        let state = tempfile::tempdir().unwrap();
        let folder = state.path().join("faults");
        Journal::new(&folder, &"r1".into())
            .owe(1, &[thaw("a")])
            .unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder), 0o700);
        assert_eq!(mode(&folder.join("r1.jsonl")), 0o600);
    }

    #[test]
    fn what_a_journal_would_not_say_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r1.jsonl");
        let head = head_of_somebody_dead();
        let owed = serde_json::to_string(&Line::Owed {
            id: 1,
            debts: vec![thaw("a")],
        });
        let owed = owed.unwrap();
        for text in [
            format!("{head}\n{owed}\n{{\"undo\":\"everything\"}}\n"),
            format!("{owed}\n{head}\n"),
            "somebody's notes\n".to_owned(),
        ] {
            fs::write(&path, &text).unwrap();
            assert!(Left::read(&path).is_err(), "{text}");
        }
        fs::remove_file(&path).unwrap();
        let elsewhere = folder.path().join("elsewhere");
        fs::write(&elsewhere, format!("{head}\n{owed}\n")).unwrap();
        assert_eq!(left(&elsewhere).debts, [thaw("a")]);
        std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
        assert!(Left::read(&path).is_err(), "a link is not followed");
    }

    #[test]
    fn a_journal_that_was_never_begun_goes_when_it_is_old() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r1.jsonl");
        let file = File::create(&path).unwrap();
        assert_eq!(Left::read(&path), Ok(None));
        assert!(!was_never_begun(&path), "it may just be begun");
        let then = std::time::SystemTime::now() - 2 * UNFINISHED_FOR;
        file.set_modified(then).unwrap();
        assert!(was_never_begun(&path));
    }

    #[test]
    fn what_is_no_name_is_not_read() {
        for line in [
            r#"{"run":"../x","owner":""}"#,
            r#"{"id":1,"debts":[{"undo":"filters","node":"/../somebody-elses"}]}"#,
            r#"{"id":1,"debts":[{"undo":"links","source":"a/b"}]}"#,
        ] {
            assert!(serde_json::from_str::<Line>(line).is_err(), "{line}");
        }
    }
}
