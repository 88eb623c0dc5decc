//! The common parts of the commands that make a load: the check that servers answer, the
//! scenario that is written from the options, and the run at these servers.

mod servers;
mod written;

pub use crate::run::ServerAddresses;
pub use servers::{mistakes_in_addresses, must_answer};
pub use written::{WrittenScenario, scalar};

use super::runs_document::RunsDocument;
use super::*;
use crate::run::{LocalRequest, run_local};
use crate::scenario::Scenario;

/// Returns the scenario that was written from the options, or all errors in the options at once.
pub fn scenario(written: &WrittenScenario, mut mistakes: Vec<String>) -> Result<Scenario, Failure> {
    match written.scenario() {
        Ok(scenario) if mistakes.is_empty() => return Ok(scenario),
        Ok(_) => {}
        Err(wrong) => mistakes.extend(wrong),
    }
    Err(Failure::usage(mistakes.join("\n")))
}

/// Returns the folder for results: the given one, or else the home's.
pub fn results(given: Option<PathBuf>, home: Option<&Path>) -> Result<PathBuf, Failure> {
    match given {
        Some(folder) => Ok(folder),
        None => Ok(Home::find(home)?.results()),
    }
}

pub async fn run(request: &LocalRequest<'_>, printed: &OutputFormat) -> Result<Exit, Failure> {
    let interrupt = interrupt::listen()?;
    let progress = progress::for_this_output();
    let run = run_local(request, &progress, &interrupt).await?;
    if printed.is_json() {
        let mut document = RunsDocument::default();
        document.add(&run);
        document.print(Ok(run.verdict()))?;
    } else {
        output::screen(terminal::screen(&run, &progress::look(false)))?
    }
    Ok(run.verdict().into())
}
