//! The runs of one command: what is printed of each, and what is kept of all for CI.

use super::progress::ProgressDisplay;
use super::runs_document::RunsDocument;
use super::runtime::{OpenRuntime, open};
use super::*;
use crate::report::junit::{self, Suite};
use crate::report::summary::Summary;
use crate::report::tally::Tally;
use crate::run::{Groundwork, JUNIT, Lab, Report, RunOptions, make_folder, run_all, write_whole};
use crate::scenario::Scenario;
use tokio_util::sync::CancellationToken;

#[derive(Default)]
pub struct RunsReport {
    pub tally: Tally,
    pub summary: Summary,
    pub document: RunsDocument,
    /// Whether the command prints a JSON document at the end instead.
    pub silent: bool,
    suites: Vec<Suite>,
    verdicts: Vec<(String, Outcome)>,
}

/// Runs everything and prints the results. Even after an error, the report contains every
/// scenario that was to run.
pub async fn run_scenarios(
    home: &Home,
    scenarios: &[Scenario],
    options: &RunOptions,
    report: &mut RunsReport,
) -> Result<(), Failure> {
    let progress = progress::for_this_output();
    let is_one = scenarios.len() == 1;
    let interrupt = interrupt::listen()?;
    let mut tell = |run: &RunRecord| report.tell(run, options.repeat, is_one, &progress);
    let ended = run_each(home, scenarios, options, (&progress, &interrupt), &mut tell).await;
    let results = home.results_of(options);
    for scenario in scenarios {
        if !report.has(&scenario.name) {
            report.add(&options.record(scenario));
        }
    }
    report.tell_all(options.repeat, &results)?;
    ended
}

/// Runs everything, and tells nobody but the caller.
pub async fn run_each(
    home: &Home,
    scenarios: &[Scenario],
    options: &RunOptions,
    (progress, interrupt): (&ProgressDisplay, &CancellationToken),
    tell: &mut Report<'_>,
) -> Result<(), Failure> {
    let (toxiproxy, topologies) = (home.toxiproxy()?, home.topologies()?);
    let resources = home.resources()?;
    let OpenRuntime { runtime, journals } = open(options.runtime_of(scenarios), progress).await?;
    let lab = Lab {
        options,
        runtime: runtime.as_ref(),
        topologies: &topologies,
        resources: &resources,
        toxiproxy: &toxiproxy,
        home: &home.layers(),
        journals: &journals,
        groundwork: &Groundwork::default(),
        results: &home.results_of(options),
        progress,
        interrupt,
    };
    Ok(run_all(&lab, scenarios, tell).await?)
}

impl RunsReport {
    pub fn new(silent: bool) -> RunsReport {
        RunsReport {
            silent,
            ..RunsReport::default()
        }
    }

    fn add(&mut self, run: &RunRecord) {
        self.tally.add(run);
        self.summary.add(run);
        self.suites.push(junit::suite(run));
        self.document.add(run);
        self.verdicts
            .push((run.scenario.to_string(), run.verdict()));
    }

    /// Adds a run and prints it. Of many good runs a line in the tally is enough. The reason
    /// why a run is unfinished is printed at the end of the command.
    fn tell(
        &mut self,
        run: &RunRecord,
        repeat: u32,
        is_one: bool,
        progress: &ProgressDisplay,
    ) -> Result<(), String> {
        self.add(run);
        let is_good = run.verdict() == Outcome::AsExpected;
        if self.silent || !run.unfinished.is_empty() || repeat > 1 && is_good {
            return Ok(());
        }
        let look = progress::look(false);
        let printed = if is_good && !is_one {
            progress.print(terminal::line(run, &look))
        } else {
            progress.print(terminal::screen(run, &look))
        };
        printed.map_err(|error| error.to_string())
    }

    fn tell_all(&mut self, repeat: u32, results: &Path) -> Result<(), Failure> {
        if repeat > 1 {
            self.document.note("tally", json!(self.tally));
        }
        if self.silent {
            return Ok(());
        }
        if repeat > 1 {
            output::screen(self.tally.table())
        } else if self.verdicts.len() > 1 {
            let look = progress::look(false);
            output::screen(terminal::summary(&self.verdicts, results, &look))
        } else {
            Ok(())
        }
    }

    pub fn has(&self, scenario: &str) -> bool {
        self.verdicts.iter().any(|(name, _)| name == scenario)
    }

    /// Adds a scenario that was to run but could not be read.
    pub fn add_invalid(&mut self, scenario: &str, reason: &str) {
        self.suites.push(junit::invalid(scenario, reason));
    }

    /// Writes one file for all runs; each run has its own as well.
    pub fn write_junit(&self, results: &Path) -> Result<PathBuf, Failure> {
        // If nothing could run, the folder may not exist yet.
        make_folder(results)?;
        let path = results.join(JUNIT);
        write_whole(&path, junit::document(&self.suites).as_bytes())?;
        Ok(path)
    }
}
