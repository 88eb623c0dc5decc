use super::exit::{Exit, Failure};
use crate::worker::{self, WorkerEnd, WorkerTask};

/// On a runtime of one thread: an injected pause then stops everything.
pub fn execute(task: WorkerTask) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::harness)?;
    match runtime.block_on(worker::run(task)) {
        Ok(WorkerEnd::Done) => Ok(Exit::AsExpected),
        Ok(WorkerEnd::Stopped) => Ok(Exit::Inconclusive),
        Err(error) => Err(Failure::harness(error)),
    }
}
