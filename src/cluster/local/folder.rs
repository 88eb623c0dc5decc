//! What a run has on disk: whose it is, and a private folder for each node with
//! what it stored, what it said, and which process it is.

use crate::cluster::Owner;
use crate::model::Name;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

const OWNER: &str = "owner";
const KEPT: &str = "kept";
const LOG: &str = "log";
const PID: &str = "pid";
const NODES: &str = "nodes";
/// Stands in the place of a container's root.
const ROOT: &str = "root";

/// `ROOT/RUN`, for this user alone.
pub struct RunFolder {
    pub path: PathBuf,
}

impl RunFolder {
    pub fn create(root: &Path, run: &Name, keep: bool) -> io::Result<RunFolder> {
        let folder = RunFolder::of(root, run);
        private_folder(&folder.path)?;
        fs::write(folder.path.join(OWNER), Owner::current().to_label())?;
        if keep {
            fs::write(folder.path.join(KEPT), "")?;
        }
        Ok(folder)
    }

    pub fn of(root: &Path, run: &Name) -> RunFolder {
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
    pub fn node(&self, name: &Name) -> io::Result<NodeFolder> {
        let node = self.place(name);
        private_folder(&node.root())?;
        Ok(node)
    }

    pub fn remove_node(&self, name: &Name) -> io::Result<()> {
        gone_is_fine(fs::remove_dir_all(self.place(name).path))
    }

    fn place(&self, name: &Name) -> NodeFolder {
        NodeFolder {
            path: self.path.join(NODES).join(name),
        }
    }

    /// Everything that a node said, in all its lives; nothing where it never did.
    pub fn log(&self, name: &Name) -> io::Result<String> {
        match fs::read(self.place(name).log()) {
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
        let Ok(entries) = fs::read_dir(self.path.join(NODES)) else {
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

/// `ROOT/RUN/nodes/NODE`
#[derive(Clone, Debug)]
pub struct NodeFolder {
    path: PathBuf,
}

impl NodeFolder {
    /// Where it is at home, and has its files.
    pub fn root(&self) -> PathBuf {
        self.path.join(ROOT)
    }

    pub fn log(&self) -> PathBuf {
        self.path.join(LOG)
    }

    /// Notes which process it is, for whoever finds it after us.
    pub fn note_process(&self, pid: u32, started: &str) -> io::Result<()> {
        fs::write(self.path.join(PID), format!("{pid} {started}\n"))
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn folders_are_private_and_nodes_may_be_called_anything() {
        let root = tempfile::tempdir().unwrap();
        let run = RunFolder::create(root.path(), &"r1".into(), true).unwrap();
        for name in [OWNER, KEPT, NODES, LOG, PID] {
            let node = run.node(&name.into()).unwrap();
            fs::write(node.log(), name).unwrap();
            node.note_process(7, "42").unwrap();
            assert_eq!(run.log(&name.into()).unwrap(), name);
            let mode = fs::metadata(node.root()).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700, "{name}");
        }
        assert_eq!(run.owner(), Some(Owner::current()));
        assert_eq!(run.processes(), vec![(7, "42".to_owned()); 5]);
        run.remove_node(&LOG.into()).unwrap();
        assert_eq!(run.log(&LOG.into()).unwrap(), "");
        run.remove().unwrap();
        run.remove().unwrap();
        assert!(!run.path.exists() && run.owner().is_none());
    }
}
