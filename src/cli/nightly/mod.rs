//! `nightly`: runs every scenario again and compares it with the reviewed baseline.

mod changes;

use super::runs::{RunsReport, run_scenarios};
use super::*;
use crate::run::{RunOptions, make_folder, write_whole};
use crate::scenario::{Scenario, Settings};
use changes::Changes;

const SUMMARY: &str = "summary.md";

/// Run every scenario of faults, compare with the baseline, and write what people and CI read
///
/// Leaves results/index.html (the overview of all runs), results/junit.xml and results/summary.md
/// (verdicts, and what changed against results/baseline/). A scenario that cannot run is reported,
/// and the others still run; what an interrupted one had come to is written as well.
///
/// Exit codes: as of run, and 1 also when a verdict differs from the baseline, 2 also when a
/// baseline cannot be read or has no run beside it. A scenario without a baseline is reported, and
/// is not a failure.
#[derive(Args)]
pub struct Nightly {
    #[command(flatten)]
    options: RunOptions,
    #[command(flatten)]
    pub printed: OutputFormat,
}

impl Nightly {
    pub async fn execute(mut self, home: Home) -> Result<Exit, Failure> {
        let results = home.results_of(&self.options);
        // Find out before the night whether the folder is writable.
        make_folder(&results)?;
        let mut library = self.load(&home);
        let mut failures = std::mem::take(&mut library.failures);
        let mut report = RunsReport::new(self.printed.is_json());
        // A scenario that cannot run must not keep the others from running.
        self.options.keep_going = true;
        // If no scenario could be read, there is nothing to run.
        let is_hopeless = library.scenarios.is_empty() && !failures.is_empty();
        let ended = if is_hopeless {
            Ok(())
        } else {
            run_scenarios(&home, &library.scenarios, &self.options, &mut report).await
        };
        if let Err(failure) = ended {
            for scenario in &library.scenarios {
                if !report.has(&scenario.name) {
                    report.add_invalid(&scenario.name, &failure.to_string());
                }
            }
            // The failure that stopped the runs comes before those of invalid scenarios.
            failures.insert(0, failure);
        }
        for (scenario, reason) in &library.invalid {
            report.add_invalid(scenario, reason);
        }
        let changes = Changes::since_baseline(&results, &report.summary, &library);
        let written = write(&results, &report, &changes, &mut failures)?;
        let ended = match failures.first() {
            None => Ok(report.tally.worst().min(changes.outcome())),
            Some(first) => Err(Failure::new(first.exit, joined(&failures, "\n"))),
        };
        if self.printed.is_json() {
            let mut document = report.document;
            document.note("comparisons", changes.document());
            document.note("written", json!(written));
            return document.print(ended);
        }
        let written = joined(written.iter().map(|file| file.display()), ", ");
        output::screen(changes.screen())?;
        output::line(format_args!("written: {written}"))?;
        Ok(ended?.into())
    }

    /// Loads the library. Invalid scenarios do not keep the others from running, and their
    /// failures do not keep the night from being reported.
    fn load(&self, home: &Home) -> LoadedLibrary {
        let mut loaded = LoadedLibrary::default();
        let library = home.library();
        let names = library.names().unwrap_or_else(|error| {
            loaded.failures.push(error.into());
            Vec::new()
        });
        let around = match home.surroundings() {
            Ok(around) => around,
            // No scenario can be understood without its topology.
            Err(error) => {
                let failure = Failure::from(error);
                let invalid = names.into_iter().map(|name| (name, failure.to_string()));
                loaded.invalid = invalid.collect();
                loaded.failures.push(failure);
                return loaded;
            }
        };
        let settings = Settings(self.options.set.clone());
        for name in names {
            match library.load(&name, &settings, &around) {
                Ok(scenario) if self.options.leaves_out(&scenario) => loaded.left_out.push(name),
                Ok(scenario) => loaded.scenarios.push(scenario),
                Err(error) => {
                    let failure = Failure::from(error);
                    loaded.invalid.push((name, failure.to_string()));
                    loaded.failures.push(failure);
                }
            }
        }
        loaded
    }
}

/// The part of the library that could be read.
#[derive(Default)]
struct LoadedLibrary {
    scenarios: Vec<Scenario>,
    /// Loads measure the machine and do not run at night; nor does what is only simulated, if real
    /// servers were asked for.
    left_out: Vec<String>,
    /// Each invalid scenario with the reason.
    invalid: Vec<(String, String)>,
    failures: Vec<Failure>,
}

impl LoadedLibrary {
    fn leaves_out(&self, name: &str) -> bool {
        self.left_out.iter().any(|left| left == name)
    }

    /// Returns whether there is a file of that name, valid or not.
    fn knows(&self, name: &str) -> bool {
        let scenarios = self.scenarios.iter().map(|scenario| scenario.name.as_str());
        let invalid = self.invalid.iter().map(|(name, _)| name);
        let others = self.left_out.iter().chain(invalid).map(String::as_str);
        let mut all = scenarios.chain(others);
        all.any(|known| known == name)
    }
}

/// Writes the files for people and CI. The summary is last because it reports errors about the
/// others.
fn write(
    results: &Path,
    report: &RunsReport,
    changes: &Changes,
    failures: &mut Vec<Failure>,
) -> Result<Vec<PathBuf>, Failure> {
    let mut written = Vec::new();
    for file in [report.write_junit(results), overview::write(results)] {
        match file {
            Ok(file) => written.push(file),
            Err(failure) => failures.push(failure),
        }
    }
    let errors: Vec<String> = failures.iter().map(ToString::to_string).collect();
    let summary = results.join(SUMMARY);
    let page = report
        .summary
        .page(&errors, &changes.but(), &changes.page());
    write_whole(&summary, page.as_bytes())?;
    written.push(summary);
    Ok(written)
}
