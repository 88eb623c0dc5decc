use super::runs::{RunsReport, run_scenarios};
use super::*;
use crate::model::Name;
use crate::run::RunOptions;
use crate::scenario::{Scenario, Settings, once_each};
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
    /// some for many minutes. Locks that are only simulated are left out with --runtime docker and
    /// --runtime local, and simulated otherwise
    #[arg(long, conflicts_with = "scenarios")]
    all: bool,
    /// Run only this case, or only the cases on this service; may be given more than once
    #[arg(long, value_name = "NAME")]
    case: Vec<String>,
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
        self.options.cases = std::mem::take(&mut self.case);
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
        let names = match self.all {
            true => library.names()?,
            false => self.scenarios.clone(),
        };
        let (mut scenarios, mut left_out) = (Vec::new(), Vec::new());
        for name in &names {
            let error = match library.load(name, &settings, &around) {
                Ok(scenario) if self.all && self.options.leaves_out(&scenario) => continue,
                Ok(scenario) => {
                    scenarios.push(scenario);
                    continue;
                }
                Err(error) => error,
            };
            // A load has no workers: what is set of them must not keep the others from running.
            let plain = library.load(name, &Settings::default(), &around);
            let is_other = |it: &Scenario| settings.are_of_the_other_kind(it.is_load());
            if !plain.is_ok_and(|scenario| is_other(&scenario)) {
                return Err(error.into());
            }
            left_out.push(error);
        }
        match (scenarios.is_empty(), left_out) {
            (true, mut left_out) if !left_out.is_empty() => Err(left_out.swap_remove(0).into()),
            (_, left_out) => {
                let complain = |error| output::complain(format_args!("left out: {error}"));
                // With --all nobody named them.
                left_out.iter().filter(|_| !self.all).for_each(complain);
                self.check_cases(&scenarios)?;
                Ok(scenarios)
            }
        }
    }

    /// Checks that each case is one of some scenario, and each scenario has one of the cases.
    fn check_cases(&self, scenarios: &[Scenario]) -> Result<(), Failure> {
        let has =
            |scenario: &Scenario, name: &str| scenario.cases.iter().any(|it| it.is_called(name));
        let known = |scenarios: &[Scenario], name: &str| {
            let known = scenarios.iter().flat_map(|scenario| {
                let cases = scenario.cases.iter().map(|one| &one.name);
                scenario.services().into_iter().chain(cases)
            });
            let known: Vec<&str> = once_each(known.map(Name::as_str));
            suggestion(name, &known)
        };
        if self.case.is_empty() {
            return Ok(());
        }
        for name in &self.case {
            if !scenarios.iter().any(|scenario| has(scenario, name)) {
                let them = joined(scenarios.iter().map(|scenario| &scenario.name), ", ");
                let verb = if scenarios.len() == 1 { "has" } else { "have" };
                let hint = known(scenarios, name);
                return Err(Failure::usage(format!(
                    "{them} {verb} no case `{name}`; {hint}"
                )));
            }
        }
        for scenario in scenarios {
            if !self.case.iter().any(|name| has(scenario, name)) {
                let (name, cases) = (&scenario.name, self.case.join("`, `"));
                let hint = known(std::slice::from_ref(scenario), &self.case[0]);
                return Err(Failure::usage(format!(
                    "{name} has no case `{cases}`; {hint}"
                )));
            }
        }
        Ok(())
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
