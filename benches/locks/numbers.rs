//! Medians and spreads.

use std::fmt;

/// The value below which this share of the others lies; NaN of nothing.
pub fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    let at = (last as f64 * share).round() as usize;
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

/// A median, and the quarters of all values below and above which it lies:
/// how far apart they are is how noisy the machine was.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    pub quarter: f64,
    pub median: f64,
    pub three_quarters: f64,
}

impl Spread {
    pub fn of(values: &[f64]) -> Spread {
        Spread {
            quarter: percentile(values, 0.25),
            median: percentile(values, 0.5),
            three_quarters: percentile(values, 0.75),
        }
    }

    /// Round by round, for both saw the same weather.
    pub fn of_ratios(values: &[f64], beside: &[f64]) -> Spread {
        let ratios = values
            .iter()
            .zip(beside)
            .map(|(value, other)| value / other);
        Spread::of(&ratios.collect::<Vec<_>>())
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Spread {
            quarter,
            median,
            three_quarters,
        } = self;
        f.pad(&format!("{median:>6.2} ({quarter:.2}-{three_quarters:.2})"))
    }
}
