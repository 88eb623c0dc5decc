//! `diff`: compares two runs by meaning, or all runs with the baseline.

mod sides;
mod told;

pub use sides::{LATEST, Pair, Side};
pub use told::{comparisons, markdown};

use super::*;
use crate::report::diff::{self, DEFAULT_RATIO, Difference};

/// Compare two runs by meaning: verdicts, promises of the lock, violations, measurements beyond the noise
///
/// OLD and NEW are each a result.json, the folder of a run, the folder of a
/// scenario (its latest run), SCENARIO, SCENARIO@latest or SCENARIO@baseline; or
/// `latest`, `baseline` or another folder of results: then every scenario that
/// both have is compared, or the one that the other side is a run of. Names are
/// looked up below results/ and results/baseline/; a file or folder that is
/// called like one is meant with ./ before it.
///
/// Exit codes: 0 the same verdicts, 1 a verdict or what became of a lock changed, 2 not comparable.
#[derive(Args)]
pub struct Diff {
    /// The run to compare with, such as pause-gt-ttl@baseline
    old: String,
    /// The run that is compared, such as pause-gt-ttl
    new: String,
    /// Report measurements that changed by this ratio or more, either way
    #[arg(long, value_name = "RATIO", default_value_t = DEFAULT_RATIO, value_parser = threshold)]
    threshold: f64,
    /// Print for people, one JSON document, or Markdown
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub format: Format,
    /// Show measurements within the noise too
    #[arg(long)]
    all: bool,
    /// Look names up in DIR [default: results/]
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
}

fn threshold(text: &str) -> Result<f64, String> {
    let ratio = text.parse::<f64>().ok();
    let ratio = ratio.filter(|ratio| ratio.is_finite() && *ratio >= 1.0);
    ratio.ok_or_else(|| "a ratio of at least 1 is needed, such as 1.5".to_owned())
}

/// A pair of results, and the outcome of their comparison.
pub struct Comparison {
    pub pair: Pair,
    pub came_to: ComparisonOutcome,
}

pub enum ComparisonOutcome {
    Compared(Difference),
    /// The results cannot be compared, for these reasons.
    NotComparable(Vec<String>),
    /// The old side does not have the scenario yet, which is not an error of the new side.
    OnlyNew,
}

impl Diff {
    pub fn execute(self, home: impl Fn() -> Result<Home, Failure>) -> Result<Exit, Failure> {
        let results = || match &self.results {
            Some(folder) => Ok(folder.clone()),
            None => home().map(|home| home.results()),
        };
        let (old, new) = (
            Side::find(&self.old, &results),
            Side::find(&self.new, &results),
        );
        let (old, new) = match (old, new) {
            (Ok(old), Ok(new)) => (old, new),
            // Report both errors at once.
            (Err(old), Err(new)) if old.to_string() != new.to_string() => {
                return Err(Failure::new(old.exit, format!("{old}\n{new}")));
            }
            (Err(error), _) | (_, Err(error)) => return Err(error),
        };
        let pairs = sides::pairs(old, new)?;
        let comparisons = pairs.into_iter();
        let comparisons = comparisons.map(|pair| Comparison::of(pair, self.threshold));
        let comparisons: Vec<Comparison> = comparisons.collect();
        let text = match self.format {
            Format::Json => told::json(&comparisons),
            Format::Markdown => told::markdown(&comparisons, self.all),
            Format::Human => told::human(&comparisons, &look(self.all)),
        };
        output::screen(text)?;
        for comparison in &comparisons {
            let called = shown::line(&comparison.pair.called);
            match &comparison.came_to {
                ComparisonOutcome::Compared(_) => {}
                ComparisonOutcome::NotComparable(reasons) => {
                    output::complain(format_args!("error: {called}: not comparable"));
                    let reasons = reasons.iter();
                    let reasons = reasons.map(|reason| format!("  {}", shown::line(reason)));
                    reasons.for_each(output::complain);
                }
                ComparisonOutcome::OnlyNew => {
                    output::complain(format_args!("{called}: only the new side has a run of it"));
                }
            }
        }
        // If nothing could be compared, nothing is known to be the same.
        let worst = worst(&comparisons, |difference| {
            if difference.verdict_changed {
                Outcome::NotAsExpected
            } else {
                Outcome::AsExpected
            }
        });
        Ok(worst.unwrap_or(Outcome::Inconclusive).into())
    }
}

/// Returns the worst outcome: changed is worse than unknown, unknown is worse than the same, as
/// with every verdict. Returns `None` if there was nothing to compare with. The caller decides
/// the weight of a difference.
pub fn worst(
    comparisons: &[Comparison],
    weight: impl Fn(&Difference) -> Outcome,
) -> Option<Outcome> {
    let weights = comparisons.iter().filter_map(|one| match &one.came_to {
        ComparisonOutcome::Compared(difference) => Some(weight(difference)),
        ComparisonOutcome::NotComparable(_) => Some(Outcome::Inconclusive),
        ComparisonOutcome::OnlyNew => None,
    });
    weights.min()
}

impl Comparison {
    pub fn of(pair: Pair, threshold: f64) -> Comparison {
        let came_to = compare(&pair, threshold);
        Comparison { pair, came_to }
    }
}

fn compare(pair: &Pair, threshold: f64) -> ComparisonOutcome {
    let (old, new) = match (&pair.old, &pair.new) {
        (Some(old), Some(new)) => (read_result(old), read_result(new)),
        (None, _) => return ComparisonOutcome::OnlyNew,
        (_, None) => {
            let reason = "the new side has no run of it".to_owned();
            return ComparisonOutcome::NotComparable(vec![reason]);
        }
    };
    match (old, new) {
        (Ok(old), Ok(new)) => match diff::compare(&old, &new, threshold) {
            Ok(difference) => ComparisonOutcome::Compared(difference),
            Err(error) => ComparisonOutcome::NotComparable(vec![error.to_string()]),
        },
        (old, new) => {
            let errors = [old.err(), new.err()].into_iter().flatten();
            ComparisonOutcome::NotComparable(errors.collect())
        }
    }
}
