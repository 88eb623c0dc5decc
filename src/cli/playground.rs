//! Topologies that stand until somebody takes them down: what `up` and `down` share.

use super::exit::{Exit, Failure};
use super::state;
use crate::model::Name;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{File, create_dir_all};

/// A topology that is up is a run that is kept, and is called after it: so nobody
/// sweeps it away, and there is one of each.
const RUN: &str = "up";

pub fn run_of(topology: &Name) -> Name {
    topology.behind(RUN)
}

pub fn topology_of(run: &Name) -> Option<Name> {
    let topology = run.strip_prefix(RUN)?.strip_prefix('-')?;
    Name::new(topology).ok()
}

/// One at a time: two that bring up the same would take each other down.
pub fn turn() -> Result<Flock<File>, Failure> {
    let path = state::playground_lock();
    let failed = |error| Failure::harness(format!("cannot write {}: {error}", path.display()));
    if let Some(folder) = path.parent() {
        create_dir_all(folder).map_err(failed)?;
    }
    let file = File::create(&path).map_err(failed)?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|_| {
        Failure::new(
            Exit::Unavailable,
            "another `up` or `down` is under way; wait for its end",
        )
    })
}
