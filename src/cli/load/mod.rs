//! What the commands that make a load share: servers that answer, a scenario that
//! is written from options, and the run at these servers.

mod servers;
mod written;

pub use servers::{Servers, mistakes_in_addresses, must_answer};
pub use written::{Written, scalar};

use super::exit::{Exit, Failure};
use super::format::Printed;
use super::home::Home;
use super::runs_document::RunsDocument;
use super::{interrupt, output, progress};
use crate::report::terminal;
use crate::run::{LocalRequest, run_local};
use crate::scenario::Scenario;
use std::path::{Path, PathBuf};

/// The scenario that was written from the options; or everything that is wrong with
/// them, told at once.
pub fn scenario(written: &Written, mut mistakes: Vec<String>) -> Result<Scenario, Failure> {
    match written.scenario() {
        Ok(scenario) if mistakes.is_empty() => return Ok(scenario),
        Ok(_) => {}
        Err(wrong) => mistakes.extend(wrong),
    }
    Err(Failure::usage(mistakes.join("\n")))
}

/// Where results go: as given, else into the home's folder, else into this one.
pub fn results(given: Option<PathBuf>, home: Option<&Path>) -> Result<PathBuf, Failure> {
    match (given, Home::find(home)) {
        (Some(folder), _) => Ok(folder),
        (None, Ok(found)) => Ok(found.results()),
        (None, Err(error)) if home.is_some() => Err(error),
        (None, Err(_)) => Ok(PathBuf::from("results")),
    }
}

pub async fn run(request: &LocalRequest<'_>, printed: &Printed) -> Result<Exit, Failure> {
    let interrupt = interrupt::listen()?;
    let progress = progress::for_this_output();
    let run = run_local(request, &progress, &interrupt).await?;
    match printed.is_json() {
        true => {
            let mut document = RunsDocument::default();
            document.add(&run);
            document.print(Ok(run.verdict()))?;
        }
        false => output::screen(terminal::screen(&run, &progress::look(false)))?,
    }
    Ok(run.verdict().into())
}
