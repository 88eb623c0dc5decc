use super::runs::{RunsReport, run_scenarios};
use super::*;
use crate::model::Name;
use crate::run::RunOptions;
use crate::scenario::{Scenario, Settings};
use crate::yaml::suggestion;
use std::fs::OpenOptions;
use std::io::Write;

/// Start what a scenario needs, run it, heal, collect, judge, report, clean up
///
/// Each run has a folder of its own below results/, with result.json and junit.xml. Several runs
/// also leave one results/junit.xml for all of them.
#[derive(Args)]
pub struct Run {
    /// Names of scenarios, or paths of scenario files
    #[arg(required_unless_present = "all", value_name = "SCENARIO")]
    scenarios: Vec<String>,
    /// Run every scenario of faults. Loads run only by name: each needs the machine for itself,
    /// some for many minutes
    #[arg(long, conflicts_with = "scenarios")]
    all: bool,
    /// Run only this case, or only the cases on this service
    #[arg(long, value_name = "NAME")]
    case: Option<String>,
    #[command(flatten)]
    options: RunOptions,
    /// Keep the containers, or the folders of local processes, to inspect them; `fencepost clean` removes them
    #[arg(long)]
    keep: bool,
    /// Append a summary in Markdown, for the page of a CI job ($GITHUB_STEP_SUMMARY)
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
    #[command(flatten)]
    pub printed: OutputFormat,
}

impl Run {
    pub async fn execute(mut self, home: Home) -> Result<Exit, Failure> {
        let scenarios = self.load(&home)?;
        // Find out before the runs whether the file is writable.
        if let Some(file) = &self.summary {
            append(file, "")?;
        }
        self.options.case = self.case.take();
        self.options.keep = self.keep;
        let mut report = RunsReport::new(self.printed.is_json());
        let ended = run_scenarios(&home, &scenarios, &self.options, &mut report).await;
        // This also covers runs that an error cut short: CI needs those most.
        let told = self.tell_ci(&home, &report, scenarios.len(), ended.as_ref().err());
        let ended = ended.and(told).map(|()| report.tally.worst());
        if report.silent {
            return report.document.print(ended);
        }
        Ok(ended?.into())
    }

    fn tell_ci(
        &self,
        home: &Home,
        report: &RunsReport,
        scenarios: usize,
        error: Option<&Failure>,
    ) -> Result<(), Failure> {
        if let Some(file) = &self.summary {
            let errors: Vec<String> = error.iter().map(ToString::to_string).collect();
            append(file, &report.summary.page(&errors, "", &[]))?;
        }
        if scenarios > 1 || self.options.repeat > 1 {
            report.write_junit(&home.results_of(&self.options))?;
        }
        Ok(())
    }

    fn load(&self, home: &Home) -> Result<Vec<Scenario>, Failure> {
        let (library, around) = (home.library(), home.surroundings()?);
        let settings = Settings(self.options.set.clone());
        let load = |name: &String| library.load(name, &settings, &around);
        let mut scenarios: Vec<Scenario> = if self.all {
            library
                .names()?
                .iter()
                .map(load)
                .collect::<Result<_, _>>()?
        } else {
            self.scenarios.iter().map(load).collect::<Result<_, _>>()?
        };
        scenarios.retain(|scenario| !self.all || !scenario.is_load());
        if let Some(case) = &self.case {
            for scenario in &scenarios {
                if !scenario.cases.iter().any(|one| one.is_called(case)) {
                    let cases = scenario.cases.iter().map(|one| &one.name);
                    let known = scenario.services().into_iter().chain(cases);
                    let known: Vec<&str> = known.map(Name::as_str).collect();
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

/// Appends to the file, after the text that other steps of the job have written there.
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
