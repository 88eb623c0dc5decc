//! The folder where this user's programs keep data that has to outlive them.
//!
//! This data decides which processes are ended and which containers are removed, so nobody else
//! may write it: a folder that another user could have filled is refused.

use super::*;
use bounded_io::files;
use nix::unistd::{User, geteuid};
use std::io;
use std::os::unix::fs::MetadataExt;

const JOURNALS: &str = "faults";
const LOCAL_JOURNALS: &str = "local-faults";
const SIMULATED_JOURNALS: &str = "simulated-faults";
const LOCAL_RUNS: &str = "local";
const REMEDY: &str = "set XDG_STATE_HOME to a folder of your own that only you can write to";

/// The state folder. It and all folders in it belong to this user.
pub struct State {
    folder: PathBuf,
}

impl State {
    /// Opens the folder, and makes it if it does not exist.
    pub fn open() -> Result<State, Failure> {
        let folder = place()?;
        let refused = |path: &Path, why: io::Error| {
            let path = path.display();
            Failure::harness(format!(
                "cannot use the state folder {path}: {why}; {REMEDY}"
            ))
        };
        files::private_folder(&folder).map_err(|why| refused(&folder, why))?;
        for name in [JOURNALS, LOCAL_JOURNALS, LOCAL_RUNS, SIMULATED_JOURNALS] {
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

    /// Returns the lock that is held while a topology is brought up or down.
    pub fn playground_lock(&self) -> PathBuf {
        self.folder.join("up.lock")
    }

    /// Returns the lock that is held while images are made.
    pub fn images_lock(&self) -> PathBuf {
        self.folder.join("images.lock")
    }

    /// Returns the folder of the journals of faults that have not been undone yet.
    pub fn journals(&self) -> PathBuf {
        self.folder.join(JOURNALS)
    }

    /// Returns the same folder for runs on local processes.
    pub fn local_journals(&self) -> PathBuf {
        self.folder.join(LOCAL_JOURNALS)
    }

    /// Returns the same folder for simulated runs, of which a killed program leaves nothing.
    pub fn simulated_journals(&self) -> PathBuf {
        self.folder.join(SIMULATED_JOURNALS)
    }

    /// Returns the folder of the runs on local processes.
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

/// Refuses the HOME of another user (`sudo` without `-H` keeps it): its owner could replace our
/// folder at any moment.
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

/// Returns the home from the user database, for an environment without HOME.
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
