//! `nightly`: everything once more, beside what somebody has reviewed.

mod changes;

use super::batch::{Batch, Harvest, Manner};
use super::exit::{Exit, Failure};
use super::format::Printed;
use super::home::Home;
use super::{output, overview};
use crate::run::{make_folder, write_whole};
use crate::scenario::{Scenario, Settings};
use changes::Changes;
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};

const SUMMARY: &str = "summary.md";

/// Run every scenario of faults, compare with the baseline, and write what people and CI read
///
/// Leaves results/index.html (the overview of all runs), results/junit.xml and results/summary.md
/// (verdicts, and what changed against results/baseline/). A scenario that cannot run is told of,
/// and the others run all the same; what an interrupted one had come to is written as well.
///
/// Exit codes: as of run, and 1 also when a verdict differs from the baseline, 2 also when a
/// baseline cannot be read or has no run beside it. A scenario without a baseline is said, and is
/// no failure.
#[derive(Args)]
pub struct Nightly {
    #[command(flatten)]
    manner: Manner,
    #[command(flatten)]
    pub printed: Printed,
}

impl Nightly {
    pub async fn execute(self, home: Home) -> Result<Exit, Failure> {
        let results = self.manner.results(&home);
        // A place that cannot be written to is better known before the night.
        make_folder(&results)?;
        let mut library = self.load(&home);
        let mut failures = std::mem::take(&mut library.failures);
        let mut harvest = Harvest::default();
        let batch = Batch {
            home: &home,
            scenarios: &library.scenarios,
            manner: &self.manner,
            case: None,
            keep: false,
            keep_going: true,
            silent: self.printed.is_json(),
        };
        // Where nothing could be read, that is all there is to say.
        let is_hopeless = library.scenarios.is_empty() && !failures.is_empty();
        if !is_hopeless && let Err(failure) = batch.run(&mut harvest).await {
            for scenario in &library.scenarios {
                if !harvest.has(&scenario.name) {
                    harvest.add_invalid(&scenario.name, &failure.to_string());
                }
            }
            // What stopped a run counts before what could not begin.
            failures.insert(0, failure);
        }
        for (scenario, reason) in &library.invalid {
            harvest.add_invalid(scenario, reason);
        }
        let changes = Changes::since_baseline(&results, &harvest.summary, &library);
        let written = write(&results, &harvest, &changes, &mut failures)?;
        let ended = match failures.first() {
            None => Ok(harvest.tally.worst().min(changes.outcome())),
            Some(first) => {
                let all: Vec<String> = failures.iter().map(ToString::to_string).collect();
                Err(Failure::new(first.exit, all.join("\n")))
            }
        };
        if self.printed.is_json() {
            let mut document = harvest.document;
            document.note("comparisons", changes.document());
            document.note("written", json!(written));
            return document.print(ended);
        }
        let written = written.iter().map(|file| file.display().to_string());
        let written: Vec<String> = written.collect();
        output::screen(changes.screen())?;
        output::line(format_args!("written: {}", written.join(", ")))?;
        Ok(ended?.into())
    }

    /// What is invalid does not keep the others from running, and nothing of it keeps anybody
    /// from being told.
    fn load(&self, home: &Home) -> Loaded {
        let mut loaded = Loaded::default();
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
        let settings = Settings(self.manner.set.clone());
        for name in names {
            match library.load(&name, &settings, &around) {
                Ok(scenario) if scenario.is_load() => loaded.loads.push(name),
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

/// The library as far as it could be read.
#[derive(Default)]
struct Loaded {
    scenarios: Vec<Scenario>,
    /// They measure the machine, and are not for the night.
    loads: Vec<String>,
    /// Each with the reason.
    invalid: Vec<(String, String)>,
    failures: Vec<Failure>,
}

impl Loaded {
    fn is_load(&self, name: &str) -> bool {
        self.loads.iter().any(|load| load == name)
    }

    /// Whether there is a file of that name, valid or not.
    fn knows(&self, name: &str) -> bool {
        let scenarios = self.scenarios.iter().map(|scenario| scenario.name.as_str());
        let invalid = self.invalid.iter().map(|(name, _)| name);
        let others = self.loads.iter().chain(invalid).map(String::as_str);
        let mut all = scenarios.chain(others);
        all.any(|known| known == name)
    }
}

/// The files for people and CI, the summary last: it tells of what went wrong with the others.
fn write(
    results: &Path,
    harvest: &Harvest,
    changes: &Changes,
    failures: &mut Vec<Failure>,
) -> Result<Vec<PathBuf>, Failure> {
    let mut written = Vec::new();
    for file in [harvest.write_junit(results), overview::write(results)] {
        match file {
            Ok(file) => written.push(file),
            Err(failure) => failures.push(failure),
        }
    }
    let errors: Vec<String> = failures.iter().map(ToString::to_string).collect();
    let summary = results.join(SUMMARY);
    let page = harvest
        .summary
        .page(&errors, &changes.but(), &changes.page());
    write_whole(&summary, page.as_bytes())?;
    written.push(summary);
    Ok(written)
}
