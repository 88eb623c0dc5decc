//! `nightly`: everything once more, beside what somebody has reviewed.

mod changes;

use super::batch::{Batch, Harvest, Manner};
use super::exit::{Exit, Failure};
use super::format::Printed;
use super::home::Home;
use super::{output, overview};
use crate::run::{FolderError, write_whole};
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
/// Exit codes: as of run, and 1 also when a verdict differs from the baseline, 2 also when the
/// baseline cannot be read. A scenario without a baseline is said, and is no failure.
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
        let made = std::fs::create_dir_all(&results);
        made.map_err(|source| FolderError::Write {
            path: results.clone(),
            source,
        })?;
        let (scenarios, mut failures) = self.load(&home)?;
        let mut harvest = Harvest::default();
        let batch = Batch {
            home: &home,
            scenarios: &scenarios,
            manner: &self.manner,
            case: None,
            keep: false,
            keep_going: true,
            silent: self.printed.is_json(),
        };
        // What stopped a run counts before what could not begin.
        if let Err(failure) = batch.run(&mut harvest).await {
            failures.insert(0, failure);
        }
        let changes = Changes::since_baseline(&results, &harvest.summary);
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
        output::print(changes.screen())?;
        output::line(format_args!("written: {}", written.join(", ")))?;
        Ok(ended?.into())
    }

    /// What is invalid does not keep the others from running.
    fn load(&self, home: &Home) -> Result<(Vec<Scenario>, Vec<Failure>), Failure> {
        let (library, around) = (home.library(), home.surroundings()?);
        let settings = Settings(self.manner.set.clone());
        let (mut scenarios, mut failures) = (Vec::new(), Vec::new());
        for name in library.names()? {
            match library.load(&name, &settings, &around) {
                Ok(scenario) if scenario.is_load() => {}
                Ok(scenario) => scenarios.push(scenario),
                Err(error) => failures.push(Failure::from(error)),
            }
        }
        Ok((scenarios, failures))
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
    let page = harvest.summary.page(&errors, &changes.page());
    write_whole(&summary, page.as_bytes())?;
    written.push(summary);
    Ok(written)
}
