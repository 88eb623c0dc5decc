//! Topologies that stay up until somebody takes them down: the shared parts of `up` and `down`.

use super::*;
use bounded_io::files;
use nix::fcntl::{Flock, FlockArg};
use std::fs::File;

/// The prefix of run names of topologies that are up. Such a topology is a kept run named after
/// it, so nothing sweeps it away and there is only one of each.
const RUN: &str = "up";

pub fn run_of(topology: &Name) -> Name {
    topology.behind(RUN)
}

pub fn topology_of(run: &Name) -> Option<Name> {
    let topology = run.strip_prefix(RUN)?.strip_prefix('-')?;
    Name::new(topology).ok()
}

/// Lets one `up` or `down` work at a time: two that bring up the same topology would take each
/// other down.
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
