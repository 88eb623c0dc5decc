//! What is not as it was when somebody reviewed it.

use super::Loaded;
use crate::cli::diff::{CameTo, Comparison, Pair, comparisons, markdown, worst};
use crate::cli::overview::{BASELINE, folders};
use crate::model::Outcome;
use crate::report::diff::{DEFAULT_RATIO, Difference, folded};
use crate::report::shown;
use crate::report::summary::Summary;
use crate::run::RESULT;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The runs of this night beside the baseline, scenario by scenario.
pub struct Changes {
    comparisons: Vec<Comparison>,
}

impl Changes {
    /// Of a scenario that ran several times, the worst run. What has a baseline and did not
    /// run is told too, loads apart: those are not for the night.
    pub fn since_baseline(results: &Path, summary: &Summary, library: &Loaded) -> Changes {
        let pairs = summary.worst_runs().map(|(scenario, folder)| {
            let old = results.join(BASELINE).join(scenario).join(RESULT);
            Pair {
                called: scenario.to_owned(),
                old: old.exists().then_some(old),
                new: Some(PathBuf::from(folder).join(RESULT)),
            }
        });
        let comparisons = pairs.map(|pair| Comparison::of(pair, DEFAULT_RATIO));
        let ran: BTreeSet<&str> = summary.worst_runs().map(|(name, _)| name).collect();
        let is_missed = |name: &str| !ran.contains(name) && !library.is_load(name);
        let missed = missed(&results.join(BASELINE), &is_missed, library);
        Changes {
            comparisons: comparisons.chain(missed).collect(),
        }
    }

    /// What a night with these changes is at best.
    pub fn outcome(&self) -> Outcome {
        worst(&self.comparisons, Difference::weight).unwrap_or(Outcome::AsExpected)
    }

    /// What a heading has to say that only knows of tonight; empty where all is as it was.
    pub fn but(&self) -> String {
        let differ = self.count(|it| has_weight(it, Outcome::NotAsExpected));
        let unknown = self.count(|it| matches!(it, CameTo::NotComparable(_)));
        let differ = match differ {
            0 => None,
            1 => Some("1 differs from the baseline".to_owned()),
            more => Some(format!("{more} differ from the baseline")),
        };
        let unknown = (unknown > 0).then(|| format!("{unknown} cannot be compared with it"));
        let said: Vec<String> = match (&differ, unknown) {
            (None, Some(words)) => vec![words.replace(" with it", " with the baseline")],
            (_, unknown) => differ.into_iter().chain(unknown).collect(),
        };
        said.join(", ")
    }

    fn count(&self, is_it: impl Fn(&CameTo) -> bool) -> usize {
        let all = self.comparisons.iter();
        all.filter(|one| is_it(&one.came_to)).count()
    }

    /// How many are how, in a line.
    fn words(&self) -> String {
        let counted = [
            (
                self.count(|it| has_weight(it, Outcome::NotAsExpected)),
                "with another verdict",
            ),
            (
                self.count(|it| has_weight(it, Outcome::Inconclusive)),
                "in doubt",
            ),
            (
                self.count(|it| has_weight(it, Outcome::AsExpected)),
                "with the same verdicts",
            ),
            (
                self.count(|it| matches!(it, CameTo::NotComparable(_))),
                "not comparable",
            ),
            (
                self.count(|it| matches!(it, CameTo::OnlyNew)),
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

    pub fn screen(&self) -> String {
        let mut text = format!("against the baseline: {}\n", self.words());
        for comparison in self.worth_reading() {
            let words = match &comparison.came_to {
                CameTo::Compared(difference) => difference.headline(),
                CameTo::NotComparable(reasons) => format!("not comparable: {}", reasons.join("; ")),
                CameTo::OnlyNew => continue,
            };
            let line = format!("{}: {words}", comparison.pair.called);
            text = text + "  " + &shown::line(&line) + "\n";
        }
        text
    }

    /// As `diff` has it.
    pub fn document(&self) -> Value {
        comparisons(&self.comparisons)
    }

    /// In parts, each of which may be left out where the page gets too long.
    pub fn page(&self) -> Vec<String> {
        let head = format!("## Against the baseline\n\n{}.\n", self.words());
        let parts = self.worth_reading().map(|one| match &one.came_to {
            // What only took longer or shorter is there for whoever wants to see it.
            CameTo::Compared(difference) if !difference.verdict_changed => folded(difference),
            _ => markdown([one], false),
        });
        std::iter::once(head).chain(parts).collect()
    }
}

fn has_weight(came_to: &CameTo, weight: Outcome) -> bool {
    matches!(came_to, CameTo::Compared(difference) if difference.weight() == weight)
}

/// The reviewed results that nothing of tonight stands beside.
fn missed(baseline: &Path, is_missed: &dyn Fn(&str) -> bool, library: &Loaded) -> Vec<Comparison> {
    let unknown = |called: String, old: PathBuf, reason: String| Comparison {
        pair: Pair {
            called,
            old: Some(old),
            new: None,
        },
        came_to: CameTo::NotComparable(vec![reason]),
    };
    let mut names = match folders(baseline) {
        Ok(names) => names,
        // Nobody has reviewed anything yet.
        Err(error) if error.kind() == ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            let reason = format!("cannot read {}: {error}", baseline.display());
            return vec![unknown(BASELINE.to_owned(), baseline.to_owned(), reason)];
        }
    };
    names.sort();
    let missed = names.into_iter().filter_map(|name| {
        let result = baseline.join(&name).join(RESULT);
        let name = name.to_string_lossy().into_owned();
        if !is_missed(&name) || !result.exists() {
            return None;
        }
        let reason = match library.knows(&name) {
            true => "it has a baseline, and did not run".to_owned(),
            false => format!(
                "it has a baseline, and no scenario is called so any more; if that is meant, remove {}",
                baseline.join(&name).display()
            ),
        };
        Some(unknown(name, result, reason))
    });
    missed.collect()
}
