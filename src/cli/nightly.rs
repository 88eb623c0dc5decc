//! `nightly`: everything once more, beside what somebody has reviewed.

use super::batch::{Batch, Harvest, Manner};
use super::diff::{CameTo, Comparison, Pair, markdown};
use super::exit::{Exit, Failure};
use super::home::Home;
use super::output;
use super::overview::{self, BASELINE};
use crate::model::Outcome;
use crate::report::diff::DEFAULT_RATIO;
use crate::report::summary::Summary;
use crate::run::{FolderError, RESULT, write_whole};
use crate::scenario::{Scenario, Settings};
use clap::Args;
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
            silent: false,
        };
        // What stopped a run counts before what could not begin.
        if let Err(failure) = batch.run(&mut harvest).await {
            failures.insert(0, failure);
        }
        let changes = Changes::since_baseline(&results, &harvest.summary);
        output::print(changes.screen())?;
        let mut written = Vec::new();
        for file in [harvest.write_junit(&results), overview::write(&results)] {
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
        let written: Vec<String> = written
            .iter()
            .map(|file| file.display().to_string())
            .collect();
        output::line(format_args!("written: {}", written.join(", ")))?;
        match failures.first() {
            Some(first) => Err(Failure::new(first.exit, errors.join("\n"))),
            None => Ok(harvest.tally.worst().min(changes.outcome()).into()),
        }
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

/// The runs of this night beside the baseline, scenario by scenario.
struct Changes {
    comparisons: Vec<Comparison>,
}

impl Changes {
    /// Of a scenario that ran several times, the worst run.
    fn since_baseline(results: &Path, summary: &Summary) -> Changes {
        let pairs = summary.worst_runs().map(|(scenario, folder)| {
            let old = results.join(BASELINE).join(scenario).join(RESULT);
            Pair {
                called: scenario.to_owned(),
                old: old.exists().then_some(old),
                new: Some(PathBuf::from(folder).join(RESULT)),
            }
        });
        let comparisons = pairs.map(|pair| Comparison::of(pair, DEFAULT_RATIO));
        Changes {
            comparisons: comparisons.collect(),
        }
    }

    fn outcome(&self) -> Outcome {
        let outcomes = self.comparisons.iter().map(|one| match &one.came_to {
            CameTo::Compared(difference) if difference.verdict_changed => Outcome::NotAsExpected,
            CameTo::NotComparable(_) => Outcome::Inconclusive,
            CameTo::Compared(_) | CameTo::OnlyNew => Outcome::AsExpected,
        });
        outcomes.min().unwrap_or(Outcome::AsExpected)
    }

    /// How many are how, in a line.
    fn words(&self) -> String {
        let count = |is_it: fn(&CameTo) -> bool| {
            let all = self.comparisons.iter();
            all.filter(|one| is_it(&one.came_to)).count()
        };
        let counted = [
            (
                count(|it| matches!(it, CameTo::Compared(it) if it.verdict_changed)),
                "with another verdict",
            ),
            (
                count(|it| matches!(it, CameTo::Compared(it) if !it.verdict_changed)),
                "with the same verdicts",
            ),
            (
                count(|it| matches!(it, CameTo::NotComparable(_))),
                "not comparable",
            ),
            (
                count(|it| matches!(it, CameTo::OnlyNew)),
                "without a baseline (`fencepost bless` makes one)",
            ),
        ];
        let counted = counted.iter().filter(|(count, _)| *count > 0);
        let counted: Vec<String> = counted.map(|(n, what)| format!("{n} {what}")).collect();
        match counted.is_empty() {
            true => "nothing ran that could be compared".to_owned(),
            false => counted.join(", "),
        }
    }

    /// What a person should look at.
    fn worth_reading(&self) -> impl Iterator<Item = &Comparison> {
        self.comparisons.iter().filter(|one| match &one.came_to {
            CameTo::Compared(difference) => difference.is_worth_reading(),
            CameTo::NotComparable(_) => true,
            CameTo::OnlyNew => false,
        })
    }

    fn screen(&self) -> String {
        let mut text = format!("against the baseline: {}\n", self.words());
        for comparison in self.worth_reading() {
            let words = match &comparison.came_to {
                CameTo::Compared(difference) => difference.headline(),
                CameTo::NotComparable(reasons) => format!("not comparable: {}", reasons.join("; ")),
                CameTo::OnlyNew => continue,
            };
            text = text + "  " + &comparison.pair.called + ": " + &words + "\n";
        }
        text
    }

    /// In parts, each of which may be left out where the page gets too long.
    fn page(&self) -> Vec<String> {
        let head = format!("## Against the baseline\n\n{}.\n", self.words());
        let parts = self.worth_reading().map(|one| markdown([one], false));
        std::iter::once(head).chain(parts).collect()
    }
}
