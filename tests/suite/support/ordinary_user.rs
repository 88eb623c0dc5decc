use super::home::copy_folder;
use super::project;
use super::turn::skip;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

pub const SOCKET: &str = "/var/run/docker.sock";
/// This is `nobody` on most machines.
const UID: u32 = 65534;

/// A user who is not root, with the program, the scenarios and all kept data in a separate folder.
pub struct OrdinaryUser {
    folder: TempDir,
    /// None if an ordinary user runs the tests anyway.
    ids: Option<(u32, u32)>,
}

impl OrdinaryUser {
    /// Returns a user in the group that may use Docker.
    pub fn with_docker() -> Option<OrdinaryUser> {
        let Ok(socket) = fs::metadata(SOCKET) else {
            skip("there is no Docker socket at its usual place");
            return None;
        };
        Some(OrdinaryUser::in_group(socket.gid()))
    }

    /// Returns a user in a group that owns nothing.
    pub fn without_docker() -> OrdinaryUser {
        OrdinaryUser::in_group(UID)
    }

    fn in_group(gid: u32) -> OrdinaryUser {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let program = env!("CARGO_BIN_EXE_fencepost");
        fs::copy(program, folder.path().join("fencepost")).expect("the program");
        for part in ["scenarios", "compose", "toxiproxy"] {
            copy_folder(&project().join(part), &folder.path().join(part));
        }
        let is_root = nix::unistd::geteuid().is_root();
        let ids = is_root.then_some((UID, gid));
        if let Some((uid, gid)) = ids {
            give(folder.path(), uid, gid);
        }
        OrdinaryUser { folder, ids }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file into the user's folder.
    pub fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).expect("a temporary file");
    }

    /// Returns the program with these arguments, run by that user.
    pub fn command<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(self.path("fencepost"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("HOME", self.folder.path())
            .env("TMPDIR", self.folder.path())
            .env("XDG_STATE_HOME", self.path("state"))
            .env_remove("FENCEPOST_HOME");
        if let Some((uid, gid)) = self.ids {
            // This also drops the other groups.
            command.uid(uid).gid(gid);
        }
        command
    }
}

fn give(path: &Path, uid: u32, gid: u32) {
    chown(path, Some(uid), Some(gid)).expect("root may do this");
    if path.is_dir() {
        for entry in fs::read_dir(path).expect("a folder") {
            give(&entry.expect("readable").path(), uid, gid);
        }
    }
}
