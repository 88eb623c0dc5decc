//! `diff`: two runs compared by meaning, or all runs with the baseline.

mod sides;
mod told;

pub use sides::{Pair, Side};
pub use told::{comparisons, markdown};

use super::exit::{Exit, Failure};
use super::format::Format;
use super::home::Home;
use super::output;
use super::progress::look;
use super::recorded::read_result;
use crate::model::Outcome;
use crate::report::diff::{self, DEFAULT_RATIO, Difference};
use crate::report::shown;
use clap::Args;
use std::path::PathBuf;

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
    /// Measurements count as changed from this ratio on, either way
    #[arg(long, value_name = "RATIO", default_value_t = DEFAULT_RATIO, value_parser = threshold)]
    threshold: f64,
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub format: Format,
    /// Show measurements within the noise too
    #[arg(long)]
    all: bool,
    /// The folder that names are looked up in [default: results/]
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
}

fn threshold(text: &str) -> Result<f64, String> {
    let ratio = text.parse::<f64>().ok();
    let ratio = ratio.filter(|ratio| ratio.is_finite() && *ratio >= 1.0);
    ratio.ok_or_else(|| "a ratio of at least 1 is needed, such as 1.5".to_owned())
}

/// One pair, and what came of it.
pub struct Comparison {
    pub pair: Pair,
    pub came_to: CameTo,
}

pub enum CameTo {
    Compared(Difference),
    /// And why.
    NotComparable(Vec<String>),
    /// A scenario that the old side does not know yet: no fault of the new one.
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
            // All errors at once.
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
                CameTo::Compared(_) => {}
                CameTo::NotComparable(reasons) => {
                    output::complain(format_args!("error: {called}: not comparable"));
                    let reasons = reasons.iter();
                    let reasons = reasons.map(|reason| format!("  {}", shown::line(reason)));
                    reasons.for_each(output::complain);
                }
                CameTo::OnlyNew => {
                    output::complain(format_args!("{called}: only the new side has a run of it"));
                }
            }
        }
        // With nothing that could be compared, nothing is known to be the same.
        let worst = worst(&comparisons, |difference| {
            match difference.verdict_changed {
                true => Outcome::NotAsExpected,
                false => Outcome::AsExpected,
            }
        });
        Ok(worst.unwrap_or(Outcome::Inconclusive).into())
    }
}

/// Changed beats unknown beats the same, as with every verdict; `None` where there was
/// nothing to compare with. How heavy a difference weighs is for whoever asks.
pub fn worst(
    comparisons: &[Comparison],
    weight: impl Fn(&Difference) -> Outcome,
) -> Option<Outcome> {
    let weights = comparisons.iter().filter_map(|one| match &one.came_to {
        CameTo::Compared(difference) => Some(weight(difference)),
        CameTo::NotComparable(_) => Some(Outcome::Inconclusive),
        CameTo::OnlyNew => None,
    });
    weights.min()
}

impl Comparison {
    pub fn of(pair: Pair, threshold: f64) -> Comparison {
        let came_to = compare(&pair, threshold);
        Comparison { pair, came_to }
    }
}

fn compare(pair: &Pair, threshold: f64) -> CameTo {
    let (old, new) = match (&pair.old, &pair.new) {
        (Some(old), Some(new)) => (read_result(old), read_result(new)),
        (None, _) => return CameTo::OnlyNew,
        (_, None) => {
            let reason = "the new side has no run of it".to_owned();
            return CameTo::NotComparable(vec![reason]);
        }
    };
    match (old, new) {
        (Ok(old), Ok(new)) => match diff::compare(&old, &new, threshold) {
            Ok(difference) => CameTo::Compared(difference),
            Err(error) => CameTo::NotComparable(vec![error.to_string()]),
        },
        (old, new) => {
            let errors = [old.err(), new.err()].into_iter().flatten();
            CameTo::NotComparable(errors.collect())
        }
    }
}
