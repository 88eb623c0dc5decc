use super::exit::{Exit, Failure};
use super::output;
use crate::worker::{self, WorkerEnd, WorkerTask};

/// On a runtime of one thread: an injected pause then stops everything.
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
