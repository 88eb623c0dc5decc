//! The changes since the reviewed baseline.

use super::*;
use crate::cli::diff::{Comparison, ComparisonOutcome, Pair, comparisons, markdown, worst};
use crate::cli::overview::{BASELINE, folders};
use crate::report::diff::{DEFAULT_RATIO, Difference, folded};
use crate::report::summary::Summary;
use crate::run::RESULT;
use std::collections::BTreeSet;
use std::io::ErrorKind;

/// The runs of this night compared with the baseline, scenario by scenario.
pub struct Changes {
    comparisons: Vec<Comparison>,
}

impl Changes {
    /// Compares the worst run of each scenario. A scenario with a baseline that did not run is
    /// included too, except those that are left out at night.
    pub fn since_baseline(results: &Path, summary: &Summary, library: &LoadedLibrary) -> Changes {
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
        let is_missed = |name: &str| !ran.contains(name) && !library.leaves_out(name);
        let missed = missed(&results.join(BASELINE), &is_missed, library);
        Changes {
            comparisons: comparisons.chain(missed).collect(),
        }
    }

    /// Returns the best outcome that a night with these changes can have.
    pub fn outcome(&self) -> Outcome {
        worst(&self.comparisons, Difference::weight).unwrap_or(Outcome::AsExpected)
    }

    /// Returns what the heading must add about the baseline; empty if nothing changed.
    pub fn but(&self) -> String {
        let differ = self.count(|it| has_weight(it, Outcome::NotAsExpected));
        let unknown = self.count(|it| matches!(it, ComparisonOutcome::NotComparable(_)));
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

    fn count(&self, is_it: impl Fn(&ComparisonOutcome) -> bool) -> usize {
        let all = self.comparisons.iter();
        all.filter(|one| is_it(&one.came_to)).count()
    }

    /// Returns the number of scenarios in each state, in one line.
    fn words(&self) -> String {
        let of = |weight| self.count(|it| has_weight(it, weight));
        let unknown = self.count(|it| matches!(it, ComparisonOutcome::NotComparable(_)));
        let new = self.count(|it| matches!(it, ComparisonOutcome::OnlyNew));
        let counted = [
            (of(Outcome::NotAsExpected), "with another verdict"),
            (of(Outcome::Inconclusive), "in doubt"),
            (of(Outcome::AsExpected), "with the same verdicts"),
            (unknown, "not comparable"),
            (new, "without a baseline (`fencepost bless` makes one)"),
        ];
        let counted = counted.iter().filter(|(count, _)| *count > 0);
        let counted = joined(counted.map(|(n, what)| format!("{n} {what}")), ", ");
        if counted.is_empty() {
            return "nothing ran that could be compared".to_owned();
        }
        counted
    }

    /// Returns the comparisons that a person should look at.
    fn worth_reading(&self) -> impl Iterator<Item = &Comparison> {
        self.comparisons.iter().filter(|one| match &one.came_to {
            ComparisonOutcome::Compared(difference) => difference.is_worth_reading(),
            ComparisonOutcome::NotComparable(_) => true,
            ComparisonOutcome::OnlyNew => false,
        })
    }

    pub fn screen(&self) -> String {
        let mut text = format!("against the baseline: {}\n", self.words());
        for comparison in self.worth_reading() {
            let words = match &comparison.came_to {
                ComparisonOutcome::Compared(difference) => difference.headline(),
                ComparisonOutcome::NotComparable(reasons) => {
                    format!("not comparable: {}", reasons.join("; "))
                }
                ComparisonOutcome::OnlyNew => continue,
            };
            let line = format!("{}: {words}", comparison.pair.called);
            text = text + "  " + &shown::line(&line) + "\n";
        }
        text
    }

    /// Returns the comparisons as `diff` prints them.
    pub fn document(&self) -> Value {
        comparisons(&self.comparisons)
    }

    /// Returns the page in parts. Each can be left out if the page gets too long.
    pub fn page(&self) -> Vec<String> {
        let head = format!("## Against the baseline\n\n{}.\n", self.words());
        let parts = self.worth_reading().map(|one| match &one.came_to {
            // A difference without a changed verdict is folded: only some readers want it.
            ComparisonOutcome::Compared(difference) if !difference.verdict_changed => {
                folded(difference)
            }
            _ => markdown([one], false),
        });
        std::iter::once(head).chain(parts).collect()
    }
}

fn has_weight(came_to: &ComparisonOutcome, weight: Outcome) -> bool {
    matches!(came_to, ComparisonOutcome::Compared(difference) if difference.weight() == weight)
}

/// Returns the results of the baseline that have no run of this night.
fn missed(
    baseline: &Path,
    is_missed: &dyn Fn(&str) -> bool,
    library: &LoadedLibrary,
) -> Vec<Comparison> {
    let unknown = |called: String, old: PathBuf, reason: String| Comparison {
        pair: Pair {
            called,
            old: Some(old),
            new: None,
        },
        came_to: ComparisonOutcome::NotComparable(vec![reason]),
    };
    let mut names = match folders(baseline) {
        Ok(names) => names,
        // There is no baseline yet.
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
        let reason = if library.knows(&name) { "it has a baseline, and did not run".to_owned() } else { format!(
                "it has a baseline, and no scenario is called so any more; if that is meant, remove {}",
                baseline.join(&name).display()
            ) };
        Some(unknown(name, result, reason))
    });
    missed.collect()
}
