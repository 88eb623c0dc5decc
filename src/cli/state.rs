//! Where this user's programs keep what has to outlive them.
//!
//! What lies there says which processes are ended and which containers are removed, so
//! nobody else may write there: a folder that another user could have filled is
//! refused.

use super::exit::Failure;
use crate::files;
use nix::unistd::{User, geteuid};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const JOURNALS: &str = "faults";
const LOCAL_JOURNALS: &str = "local-faults";
const LOCAL_RUNS: &str = "local";
const REMEDY: &str = "set XDG_STATE_HOME to a folder of your own that only you can write to";

/// The state folder, which is ours, as are all folders in it.
pub struct State {
    folder: PathBuf,
}

impl State {
    /// Made where it is not there yet.
    pub fn open() -> Result<State, Failure> {
        let folder = place()?;
        let refused = |path: &Path, why: io::Error| {
            let path = path.display();
            Failure::harness(format!(
                "cannot use the state folder {path}: {why}; {REMEDY}"
            ))
        };
        files::private_folder(&folder).map_err(|why| refused(&folder, why))?;
        for name in [JOURNALS, LOCAL_JOURNALS, LOCAL_RUNS] {
            let inside = folder.join(name);
            match files::is_private(&inside) {
                Err(why) if why.kind() != io::ErrorKind::NotFound => {
                    return Err(refused(&inside, why));
                }
                _ => {}
            }
        }
        Ok(State { folder })
    }

    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Held while a topology is brought up or down.
    pub fn playground_lock(&self) -> PathBuf {
        self.folder.join("up.lock")
    }

    /// Held while images are made.
    pub fn images_lock(&self) -> PathBuf {
        self.folder.join("images.lock")
    }

    /// The journals of faults that have not been undone yet.
    pub fn journals(&self) -> PathBuf {
        self.folder.join(JOURNALS)
    }

    /// The same of runs on local processes.
    pub fn local_journals(&self) -> PathBuf {
        self.folder.join(LOCAL_JOURNALS)
    }

    /// The folders of runs on local processes.
    pub fn local_runs(&self) -> PathBuf {
        self.folder.join(LOCAL_RUNS)
    }
}

fn place() -> Result<PathBuf, Failure> {
    let set = |name: &str| {
        let folder = PathBuf::from(std::env::var_os(name)?);
        folder.is_absolute().then_some(folder)
    };
    if let Some(state) = set("XDG_STATE_HOME") {
        return Ok(state.join("fencepost"));
    }
    let home = match set("HOME") {
        Some(home) => not_of_somebody_else(home)?,
        None => home_of_this_user()?,
    };
    Ok(home.join(".local/state/fencepost"))
}

/// With a kept HOME (`sudo` without `-H`) its owner could put another folder in the
/// place of ours at any moment.
fn not_of_somebody_else(home: PathBuf) -> Result<PathBuf, Failure> {
    let own = [0, geteuid().as_raw()];
    match std::fs::metadata(&home) {
        Ok(about) if !own.contains(&about.uid()) => Err(Failure::harness(format!(
            "cannot use the state folder in {}: that is the HOME of another user; {REMEDY}, or HOME to your own (`sudo -H`)",
            home.display()
        ))),
        _ => Ok(home),
    }
}

/// As the list of users has it, where the environment says nothing.
fn home_of_this_user() -> Result<PathBuf, Failure> {
    let user = User::from_uid(geteuid()).ok().flatten();
    let home = user.map(|user| user.dir).filter(|home| home.is_absolute());
    home.ok_or_else(|| {
        let user = geteuid();
        Failure::harness(format!(
            "cannot find a state folder: neither XDG_STATE_HOME nor HOME is set, and user {user} has no home; {REMEDY}"
        ))
    })
}
