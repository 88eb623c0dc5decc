//! What a run has on disk: whose it is, and a private folder for each node with
//! what it stored, what it said, and which process it is.

use crate::cluster::Owner;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

const OWNER: &str = "owner";
const KEPT: &str = "kept";
const LOG: &str = "log";
const PID: &str = "pid";

/// `ROOT/RUN`, for this user alone.
pub struct RunFolder {
    pub path: PathBuf,
}

impl RunFolder {
    pub fn create(root: &Path, run: &str, keep: bool) -> io::Result<RunFolder> {
        let folder = RunFolder::of(root, run);
        private_folder(&folder.path)?;
        fs::write(folder.path.join(OWNER), Owner::current().to_label())?;
        if keep {
            fs::write(folder.path.join(KEPT), "")?;
        }
        Ok(folder)
    }

    pub fn of(root: &Path, run: &str) -> RunFolder {
        RunFolder {
            path: root.join(run),
        }
    }

    /// None where it was never finished: its maker was killed in that moment.
    pub fn owner(&self) -> Option<Owner> {
        Owner::from_label(&fs::read_to_string(self.path.join(OWNER)).ok()?)
    }

    pub fn is_kept(&self) -> bool {
        self.path.join(KEPT).exists()
    }

    /// The folder of a node, made where it is not there yet.
    pub fn node(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        private_folder(&path)?;
        Ok(path)
    }

    pub fn remove_node(&self, name: &str) -> io::Result<()> {
        gone_is_fine(fs::remove_dir_all(self.path.join(name)))
    }

    /// Everything that a node said, in all its lives; nothing where it never did.
    pub fn log(&self, name: &str) -> io::Result<String> {
        match fs::read(log_of(&self.path.join(name))) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(error),
        }
    }

    pub fn remove(&self) -> io::Result<()> {
        gone_is_fine(fs::remove_dir_all(&self.path))
    }

    /// The processes that were started here, each as pid and start time.
    pub fn processes(&self) -> Vec<(u32, String)> {
        let Ok(entries) = fs::read_dir(&self.path) else {
            return Vec::new();
        };
        let pids = entries.filter_map(|entry| {
            let text = fs::read_to_string(entry.ok()?.path().join(PID)).ok()?;
            let (pid, started) = text.trim().split_once(' ')?;
            Some((pid.parse().ok()?, started.to_owned()))
        });
        pids.collect()
    }
}

pub fn log_of(node: &Path) -> PathBuf {
    node.join(LOG)
}

/// Notes which process a node is, for whoever finds it after us.
pub fn note_process(node: &Path, pid: u32, started: &str) -> io::Result<()> {
    fs::write(node.join(PID), format!("{pid} {started}\n"))
}

/// One that is there already is fine.
pub fn private_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700).create(path)
}

fn gone_is_fine(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
