//! Topologies that stand until somebody takes them down: what `up` and `down` share.

use super::exit::{Exit, Failure};
use super::state::State;
use crate::files;
use crate::model::Name;
use nix::fcntl::{Flock, FlockArg};
use std::fs::File;

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
pub fn turn(state: &State) -> Result<Flock<File>, Failure> {
    let path = state.playground_lock();
    let file = files::append_private(&path)
        .map_err(|error| Failure::harness(format!("cannot write {}: {error}", path.display())))?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|_| {
        Failure::new(
            Exit::Unavailable,
            "another `up` or `down` is under way; wait for its end",
        )
    })
}
