//! The runs of one command: how they are done, what is printed of each, and what is kept
//! of all of them for CI.

use super::exit::Failure;
use super::home::Home;
use super::progress::Shown;
use super::runs_document::RunsDocument;
use super::runtime::{Choice, Chosen};
use super::{interrupt, output, progress};
use crate::cluster::Runtime;
use crate::model::{Outcome, RunRecord};
use crate::report::junit::{self, Suite};
use crate::report::summary::Summary;
use crate::report::tally::Tally;
use crate::report::terminal;
use crate::run::{JUNIT, Pace, RunRequest, make_folder, run_all, write_whole};
use crate::scenario::{Scenario, Setting};
use clap::Args;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// What every command that runs scenarios can be told.
#[derive(Args)]
pub struct Manner {
    /// What it runs on
    #[arg(long, value_enum, default_value_t = Choice::Auto, value_name = "WHAT")]
    runtime: Choice,
    /// Seeds every random choice of a run
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run so many times and say how often each outcome came, with a 95 % confidence interval
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000), value_name = "N")]
    repeat: u32,
    /// Run so many cases at the same time, each on containers of its own; one with more than 20 of
    /// them counts as several. The default is two for each core, and at most 8
    #[arg(long, default_value_t = jobs(), value_parser = clap::value_parser!(u32).range(1..=16), value_name = "N")]
    jobs: u32,
    /// Say something differently this once, whatever the file and its cases say, such as lock.ttl=5s
    #[arg(long, value_name = "FIELD=VALUE")]
    pub set: Vec<Setting>,
    /// Where results go [default: results/]
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    /// Switch a defect on, to see that it is caught
    #[cfg(debug_assertions)]
    #[arg(long, hide = true, value_parser = mutant)]
    mutant: Option<String>,
}

impl Manner {
    pub fn results(&self, home: &Home) -> PathBuf {
        self.results.clone().unwrap_or_else(|| home.results())
    }

    /// Whether so many scenarios are more than one run.
    pub fn are_many(&self, scenarios: usize) -> bool {
        scenarios > 1 || self.repeat > 1
    }
}

/// What is to be run.
pub struct Batch<'a> {
    pub home: &'a Home,
    pub scenarios: &'a [Scenario],
    pub manner: &'a Manner,
    /// Only this case.
    pub case: Option<&'a str>,
    /// Leave the containers for looking at.
    pub keep: bool,
    /// One that cannot run is no reason not to run the others.
    pub keep_going: bool,
    /// What comes of it is printed by somebody else, as a document.
    pub silent: bool,
}

/// What all runs of a command came to.
#[derive(Default)]
pub struct Harvest {
    pub tally: Tally,
    pub summary: Summary,
    pub document: RunsDocument,
    suites: Vec<Suite>,
    verdicts: Vec<(String, Outcome)>,
}

impl Harvest {
    fn add(&mut self, run: &RunRecord) {
        self.tally.add(run);
        self.summary.add(run);
        self.suites.push(junit::suite(run));
        self.document.add(run);
        self.verdicts
            .push((run.scenario.to_string(), run.verdict()));
    }

    /// Whether anything is known of that scenario.
    pub fn has(&self, scenario: &str) -> bool {
        self.verdicts.iter().any(|(name, _)| name == scenario)
    }

    /// One that was to run, and could not even be read.
    pub fn add_invalid(&mut self, scenario: &str, reason: &str) {
        self.suites.push(junit::invalid(scenario, reason));
    }

    /// One file for all; each run has its own as well.
    pub fn write_junit(&self, results: &Path) -> Result<PathBuf, Failure> {
        // Where nothing could run there may be no folder yet.
        make_folder(results)?;
        let path = results.join(JUNIT);
        write_whole(&path, junit::document(&self.suites).as_bytes())?;
        Ok(path)
    }
}

impl Batch<'_> {
    /// Runs everything, and prints what comes of it. Whatever goes wrong, the harvest has all
    /// that was to run.
    pub async fn run(&self, harvest: &mut Harvest) -> Result<(), Failure> {
        let toxiproxy = self.home.toxiproxy()?;
        let topologies = self.home.topologies()?;
        let interrupt = interrupt::listen()?;
        let progress = progress::for_this_output();
        let chosen = self.manner.runtime.open(&progress).await;
        // Without a runtime nothing runs, and nothing has to be undone.
        let journals = chosen.as_ref().map(|chosen| chosen.journals.clone());
        let journals = journals.unwrap_or_default();
        let request = |scenario| RunRequest {
            scenario,
            topologies: &topologies,
            home: self.home.folder(),
            toxiproxy: &toxiproxy,
            journals: journals.clone(),
            case: self.case,
            seed: self.manner.seed,
            keep: self.keep,
            results: self.manner.results(self.home),
            #[cfg(debug_assertions)]
            mutant: self.manner.mutant.clone(),
            #[cfg(not(debug_assertions))]
            mutant: None,
        };
        let requests: Vec<RunRequest<'_>> = self.scenarios.iter().map(request).collect();
        let ended = match chosen {
            Ok(Chosen { runtime, .. }) => {
                let on = (runtime.as_ref(), &progress, &interrupt);
                self.run_requests(&requests, on, harvest).await
            }
            Err(failure) => Err(failure),
        };
        for request in &requests {
            if !harvest.has(&request.scenario.name) {
                harvest.add(&request.not_begun());
            }
        }
        if self.manner.repeat > 1 {
            harvest.document.count(&harvest.tally);
        }
        if self.silent {
            return ended;
        }
        if self.manner.repeat > 1 {
            output::screen(harvest.tally.table())?;
        } else if harvest.verdicts.len() > 1 {
            let look = progress::look(false);
            let results = self.manner.results(self.home);
            output::screen(terminal::summary(&harvest.verdicts, &results, &look))?;
        }
        ended
    }

    async fn run_requests(
        &self,
        requests: &[RunRequest<'_>],
        (runtime, progress, interrupt): (&dyn Runtime, &Shown, &CancellationToken),
        harvest: &mut Harvest,
    ) -> Result<(), Failure> {
        let pace = Pace {
            repeat: self.manner.repeat,
            jobs: self.manner.jobs,
            keep_going: self.keep_going,
        };
        let look = progress::look(false);
        let mut report = |run: &RunRecord| {
            harvest.add(run);
            // Of many good runs a line in the tally is enough; why one did not come to its end
            // is what the command ends with.
            let is_good = run.verdict() == Outcome::AsExpected;
            let is_told_elsewhere = self.silent || !run.unfinished.is_empty();
            if self.manner.repeat > 1 && is_good || is_told_elsewhere {
                return Ok(());
            }
            let text = match is_good && requests.len() > 1 {
                true => terminal::line(run, &look),
                false => terminal::screen(run, &look),
            };
            progress.print(text).map_err(|error| error.to_string())
        };
        run_all(requests, pace, runtime, progress, interrupt, &mut report).await?;
        Ok(())
    }
}

/// Cases mostly wait, so a core does two at a time; more than eight is for
/// somebody to ask for.
fn jobs() -> u32 {
    let cores = std::thread::available_parallelism();
    cores.map_or(2, |cores| (2 * cores.get()).clamp(2, 8) as u32)
}

#[cfg(debug_assertions)]
fn mutant(name: &str) -> Result<String, String> {
    let known = crate::run::mutants();
    match known.contains(&name) {
        true => Ok(name.to_owned()),
        false => Err(format!("known: {}", known.join(", "))),
    }
}
