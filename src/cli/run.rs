use super::exit::{Exit, Failure};
use super::format::Printed;
use super::home::Home;
use super::runs_document::RunsDocument;
use super::{interrupt, output, progress, state};
use crate::cluster::docker::DockerRuntime;
use crate::cluster::topology::{Service, Topology};
use crate::model::{Outcome, RunRecord};
use crate::report::tally::Tally;
use crate::report::terminal;
use crate::run::{Pace, RunRequest, run_all};
use crate::scenario::{Scenario, Setting, Settings};
use crate::yaml::suggestion;
use clap::Args;
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(Args)]
pub struct Run {
    /// Names of scenarios, or paths of scenario files
    #[arg(required_unless_present = "all", value_name = "SCENARIO")]
    scenarios: Vec<String>,
    /// Run every scenario of faults. Loads are run by their names: each takes the machine for itself,
    /// some for many minutes
    #[arg(long, conflicts_with = "scenarios")]
    all: bool,
    /// Run only this case
    #[arg(long, value_name = "NAME")]
    case: Option<String>,
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
    set: Vec<Setting>,
    /// Leave the containers for looking at; `fencepost clean` removes them
    #[arg(long)]
    keep: bool,
    /// Where results go [default: results/]
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    #[command(flatten)]
    pub printed: Printed,
    /// Switch a defect on, to see that it is caught
    #[cfg(debug_assertions)]
    #[arg(long, hide = true, value_parser = mutant)]
    mutant: Option<String>,
}

impl Run {
    pub async fn execute(self, home: Home) -> Result<Exit, Failure> {
        let scenarios = self.load(&home)?;
        let toxiproxy = home.toxiproxy()?;
        let topologies = home.topologies()?;
        let requests: Vec<RunRequest<'_>> = scenarios
            .iter()
            .map(|scenario| self.request(&home, scenario, &topologies, &toxiproxy))
            .collect();
        let interrupt = interrupt::listen()?;
        let progress = progress::for_this_output();
        let runtime = DockerRuntime::connect().await?;
        let pace = Pace {
            repeat: self.repeat,
            jobs: self.jobs,
        };
        let mut tally = Tally::default();
        let mut verdicts = Vec::new();
        let mut document = RunsDocument::default();
        let look = progress::look(false);
        let mut report = |run: &RunRecord| {
            tally.add(run);
            verdicts.push((run.scenario.clone(), run.verdict()));
            let text = match run.verdict() {
                _ if self.printed.is_json() => {
                    document.add(run);
                    return Ok(());
                }
                // Of many good runs a line in the tally is enough.
                Outcome::AsExpected if self.repeat > 1 => return Ok(()),
                Outcome::AsExpected if requests.len() > 1 => terminal::line(run, &look),
                _ => terminal::screen(run, &look),
            };
            progress.print(text).map_err(|error| error.to_string())
        };
        let ended = run_all(
            &requests,
            pace,
            &runtime,
            &progress,
            &interrupt,
            &mut report,
        )
        .await;
        if self.printed.is_json() {
            if self.repeat > 1 {
                document.count(&tally);
            }
            return match ended.map_err(Failure::from) {
                Ok(()) => document.print(tally.worst()).map(|()| tally.worst().into()),
                Err(failure) => {
                    document.print_failure(&failure)?;
                    output::complain(format_args!("error: {failure}"));
                    Ok(failure.exit)
                }
            };
        }
        if self.repeat > 1 {
            output::print(tally.table())?;
        } else if verdicts.len() > 1 {
            output::print(terminal::summary(&verdicts, &look))?;
        }
        ended?;
        Ok(tally.worst().into())
    }

    fn load(&self, home: &Home) -> Result<Vec<Scenario>, Failure> {
        let names = match self.all {
            true => home.library().names()?,
            false => self.scenarios.clone(),
        };
        let (library, around) = (home.library(), home.surroundings()?);
        let settings = Settings(self.set.clone());
        let scenarios = names.iter();
        let scenarios = scenarios.map(|name| library.load(name, &settings, &around));
        let scenarios: Vec<Scenario> = scenarios.collect::<Result<_, _>>()?;
        let scenarios: Vec<Scenario> = match self.all {
            true => scenarios.into_iter().filter(|it| !it.is_load()).collect(),
            false => scenarios,
        };
        if let Some(case) = &self.case {
            for scenario in &scenarios {
                let known: Vec<&str> = scenario.cases.iter().map(|c| c.name.as_str()).collect();
                if !known.contains(&case.as_str()) {
                    let hint = suggestion(case, &known);
                    let name = &scenario.name;
                    let message = format!("{name} has no case `{case}`; {hint}");
                    return Err(Failure::usage(message));
                }
            }
        }
        Ok(scenarios)
    }

    fn request<'a>(
        &'a self,
        home: &'a Home,
        scenario: &'a Scenario,
        topologies: &'a BTreeMap<String, Topology>,
        toxiproxy: &'a Service,
    ) -> RunRequest<'a> {
        RunRequest {
            scenario,
            topologies,
            home: home.folder(),
            toxiproxy,
            journals: state::journals(),
            case: self.case.as_deref(),
            seed: self.seed,
            keep: self.keep,
            results: self.results.clone().unwrap_or_else(|| home.results()),
            #[cfg(debug_assertions)]
            mutant: self.mutant.clone(),
            #[cfg(not(debug_assertions))]
            mutant: None,
        }
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
