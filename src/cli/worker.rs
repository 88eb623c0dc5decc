use super::*;
use crate::worker::{self, WorkerEnd, WorkerTask};

/// Runs the worker on one thread, so that an injected pause stops everything.
pub fn execute(task: WorkerTask) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::harness)?;
    match runtime.block_on(worker::run(task)) {
        Ok(WorkerEnd::Done) => Ok(Exit::AsExpected),
        Ok(WorkerEnd::Stopped) => {
            output::complain("stopped before it was done: its stdin ended, or it was asked to end");
            Ok(Exit::Inconclusive)
        }
        Err(error) if error.is_usage() => Err(Failure::usage(error)),
        Err(error) => Err(Failure::harness(error)),
    }
}
