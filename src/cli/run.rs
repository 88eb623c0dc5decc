use super::batch::{Batch, Harvest, Manner};
use super::exit::{Exit, Failure};
use super::format::Printed;
use super::home::Home;
use crate::scenario::{Scenario, Settings};
use crate::yaml::suggestion;
use clap::Args;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Start what a scenario needs, run it, heal, collect, judge, report, clean up
///
/// Each run has a folder of its own below results/, with result.json and junit.xml. Several runs
/// also leave one results/junit.xml for all of them.
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
    #[command(flatten)]
    manner: Manner,
    /// Leave the containers, or the folders of local processes, for looking at; `fencepost clean` removes them
    #[arg(long)]
    keep: bool,
    /// Append a summary in Markdown, for the page of a CI job ($GITHUB_STEP_SUMMARY)
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
    #[command(flatten)]
    pub printed: Printed,
}

impl Run {
    pub async fn execute(self, home: Home) -> Result<Exit, Failure> {
        let scenarios = self.load(&home)?;
        // A place that cannot be written to is better known before the runs.
        if let Some(file) = &self.summary {
            append(file, "")?;
        }
        let mut harvest = Harvest::default();
        let batch = Batch {
            home: &home,
            scenarios: &scenarios,
            manner: &self.manner,
            case: self.case.as_deref(),
            keep: self.keep,
            keep_going: false,
            silent: self.printed.is_json(),
        };
        let ended = batch.run(&mut harvest).await;
        // Also of runs that an error cut short: CI wants to know about those before all others.
        let told = self.tell_ci(&home, &harvest, scenarios.len(), ended.as_ref().err());
        let ended = ended.and(told).map(|()| harvest.tally.worst());
        match self.printed.is_json() {
            true => harvest.document.print(ended),
            false => Ok(ended?.into()),
        }
    }

    fn tell_ci(
        &self,
        home: &Home,
        harvest: &Harvest,
        scenarios: usize,
        error: Option<&Failure>,
    ) -> Result<(), Failure> {
        if let Some(file) = &self.summary {
            let errors: Vec<String> = error.iter().map(ToString::to_string).collect();
            append(file, &harvest.summary.page(&errors, "", &[]))?;
        }
        if self.manner.are_many(scenarios) {
            harvest.write_junit(&self.manner.results(home))?;
        }
        Ok(())
    }

    fn load(&self, home: &Home) -> Result<Vec<Scenario>, Failure> {
        let names = match self.all {
            true => home.library().names()?,
            false => self.scenarios.clone(),
        };
        let (library, around) = (home.library(), home.surroundings()?);
        let settings = Settings(self.manner.set.clone());
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
}

/// Behind whatever other steps of the job have written there.
fn append(file: &Path, text: &str) -> Result<(), Failure> {
    let open = OpenOptions::new().append(true).create(true).open(file);
    let written = open.and_then(|mut open| open.write_all(text.as_bytes()));
    written.map_err(|error| {
        let file = file.display();
        Failure::harness(format!(
            "cannot append to {file}: {error}; choose another file with --summary"
        ))
    })
}
