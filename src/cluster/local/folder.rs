//! The files of a run: its owner, and a private folder for each node with its data, its log and its
//! process id.

use super::*;
use crate::cluster::Owner;
use bounded_io::files::{self, Links};
use std::io::Write;

const OWNER: &str = "owner";
const KEPT: &str = "kept";
const LOG: &str = "log";
const PID: &str = "pid";
const NODES: &str = "nodes";
/// The folder in place of a container's root.
const ROOT: &str = "root";

/// The folder `ROOT/RUN`, for this user alone.
pub struct RunFolder {
    pub path: PathBuf,
}

impl RunFolder {
    pub fn create(root: &Path, run: &Name, keep: bool) -> io::Result<RunFolder> {
        let folder = RunFolder::of(root, run);
        private_folder(&folder.path)?;
        if keep {
            files::create(&folder.path.join(KEPT), files::PRIVATE)?;
        }
        let mut owner = files::create(&folder.path.join(OWNER), files::PRIVATE)?;
        owner.write_all(Owner::current().to_label().as_bytes())?;
        Ok(folder)
    }

    pub fn of(root: &Path, run: &Name) -> RunFolder {
        RunFolder {
            path: root.join(run),
        }
    }

    /// Returns None if the file was never finished: its maker was killed in that moment.
    pub fn owner(&self) -> Option<Owner> {
        Owner::from_label(&note(&self.path.join(OWNER))?)
    }

    pub fn is_kept(&self) -> bool {
        self.path.join(KEPT).symlink_metadata().is_ok()
    }

    /// Returns the folder of a node, and makes it if it is not there yet.
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

    /// Returns everything that a node printed, over all its starts; nothing if it never did.
    pub fn log(&self, name: &Name) -> io::Result<String> {
        match files::read(&self.place(name).log(), Links::Refuse, files::ROWS) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(error),
        }
    }

    pub fn remove(&self) -> io::Result<()> {
        gone_is_fine(fs::remove_dir_all(&self.path))
    }

    /// Returns the processes that were started here, each as pid and start time.
    pub fn processes(&self) -> Vec<(u32, String)> {
        let Ok(entries) = fs::read_dir(self.path.join(NODES)) else {
            return Vec::new();
        };
        let notes = entries.filter_map(|entry| note(&entry.ok()?.path().join(PID)));
        let mut processes = Vec::new();
        for text in notes {
            let parts = text.lines().filter_map(|line| line.trim().split_once(' '));
            let parts =
                parts.filter_map(|(pid, started)| Some((pid.parse().ok()?, started.into())));
            processes.extend(parts);
        }
        processes
    }
}

/// The folder `ROOT/RUN/nodes/NODE`.
#[derive(Clone, Debug)]
pub struct NodeFolder {
    path: PathBuf,
}

impl NodeFolder {
    /// Returns its working folder, which has its files.
    pub fn root(&self) -> PathBuf {
        self.path.join(ROOT)
    }

    pub fn log(&self) -> PathBuf {
        self.path.join(LOG)
    }

    /// Notes which processes it is, for a later run that finds them.
    pub fn note_processes(&self, all: &[(u32, String)]) -> io::Result<()> {
        let lines = all
            .iter()
            .map(|(pid, started)| format!("{pid} {started}\n"));
        let text: String = lines.collect();
        files::write_whole(&self.path.join(PID), text.as_bytes(), files::PRIVATE)
    }
}

/// Returns a note that we wrote here, if it is readable.
fn note(path: &Path) -> Option<String> {
    files::read_text(path, Links::Refuse, files::NOTE).ok()
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
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        for name in [OWNER, KEPT, NODES, LOG, PID] {
            let node = run.node(&name.into()).unwrap();
            fs::write(node.log(), name).unwrap();
            node.note_processes(&[(7, "42".to_owned())]).unwrap();
            assert_eq!(run.log(&name.into()).unwrap(), name);
            assert_eq!(mode(&node.root()), 0o700, "{name}");
            assert_eq!(mode(&node.path.join(PID)), 0o600, "{name}");
        }
        assert_eq!(mode(&run.path.join(OWNER)), 0o600);
        assert_eq!(run.owner(), Some(Owner::current()));
        assert_eq!(run.processes(), vec![(7, "42".to_owned()); 5]);
        run.remove_node(&LOG.into()).unwrap();
        assert_eq!(run.log(&LOG.into()).unwrap(), "");
        run.remove().unwrap();
        run.remove().unwrap();
        assert!(!run.path.exists() && run.owner().is_none());
    }
}
