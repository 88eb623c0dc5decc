//! What is not as it was when somebody reviewed it.

use crate::cli::diff::{CameTo, Comparison, Pair, comparisons, markdown};
use crate::cli::overview::BASELINE;
use crate::model::Outcome;
use crate::report::diff::{DEFAULT_RATIO, folded};
use crate::report::summary::Summary;
use crate::run::RESULT;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The runs of this night beside the baseline, scenario by scenario.
pub struct Changes {
    comparisons: Vec<Comparison>,
}

impl Changes {
    /// Of a scenario that ran several times, the worst run.
    pub fn since_baseline(results: &Path, summary: &Summary) -> Changes {
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

    pub fn outcome(&self) -> Outcome {
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

    pub fn screen(&self) -> String {
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
