//! On which cores client and servers run. On one and the same core a round
//! trip costs a quarter of what it costs across two, so ratios are comparable
//! only within one placement.

use crate::Trouble;
use crate::servers::docker_ok;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use std::sync::OnceLock;

static PINNED: OnceLock<usize> = OnceLock::new();

/// Before any thread is started: threads inherit it. Says what was chosen.
pub fn choose(core: Option<usize>) -> Result<String, Trouble> {
    let Some(core) = core else {
        let cores = std::thread::available_parallelism()?;
        return Ok(format!("Placement: free, on {cores} cores."));
    };
    let mut cores = CpuSet::new();
    cores.set(core)?;
    sched_setaffinity(Pid::from_raw(0), &cores)
        .map_err(|error| format!("cannot run on core {core}: {error}"))?;
    PINNED.set(core).map_err(|_| "placed twice")?;
    Ok(format!("Placement: client and servers all on core {core}."))
}

/// The same for a server.
pub fn place(container: &str) {
    if let Some(core) = PINNED.get() {
        docker_ok(&["update", "--cpuset-cpus", &core.to_string(), container]);
    }
}
