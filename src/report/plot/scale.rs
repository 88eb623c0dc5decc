//! Maps values to positions on an axis, with ticks at round numbers.

/// From this ratio on an axis is logarithmic: small values would otherwise lie on the axis.
const DECADES_FROM: f64 = 30.0;
const SPREAD_FROM: f64 = 8.0;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    low: f64,
    high: f64,
    log: bool,
}

impl Scale {
    /// Makes a scale that starts at zero, unless the values span decades.
    pub fn fit(values: impl Iterator<Item = f64> + Clone) -> Scale {
        let above_zero = values.clone().filter(|value| *value > 0.0);
        let lowest = above_zero.fold(f64::INFINITY, f64::min);
        let highest = values.fold(0.0, f64::max);
        if highest / lowest >= DECADES_FROM {
            return Scale::decades(lowest, highest);
        }
        Scale::to_round(highest)
    }

    fn decades(lowest: f64, highest: f64) -> Scale {
        let (low, high) = (round_below(lowest), round_above(highest));
        Scale {
            low,
            high,
            log: true,
        }
    }

    /// Makes a scale from zero, however different the values are.
    pub fn linear(values: impl Iterator<Item = f64>) -> Scale {
        Scale::to_round(values.fold(0.0, f64::max))
    }

    /// Makes a scale for values with growing distances, such as numbers of contenders: it is
    /// logarithmic from a smaller ratio on.
    pub fn spread(values: impl Iterator<Item = f64> + Clone) -> Scale {
        let lowest = values.clone().fold(f64::INFINITY, f64::min);
        let highest = values.clone().fold(0.0, f64::max);
        if lowest > 0.0 && highest / lowest >= SPREAD_FROM {
            return Scale::decades(lowest, highest);
        }
        Scale::to_round(highest)
    }

    fn to_round(highest: f64) -> Scale {
        let high = if highest > 0.0 { highest } else { 1.0 };
        Scale {
            low: 0.0,
            high: (high / step(high) - 1e-9).ceil() * step(high),
            log: false,
        }
    }

    /// Makes a scale from zero to the value itself, not to a round number above it.
    pub fn up_to(high: f64) -> Scale {
        Scale {
            low: 0.0,
            high: high.max(1.0),
            log: false,
        }
    }

    /// Returns a position from 0 to 1; `None` if the value has no place on the axis.
    pub fn place(&self, value: f64) -> Option<f64> {
        let place = match self.log {
            true if value <= 0.0 => return None,
            true => (value / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        };
        place.is_finite().then_some(place.clamp(0.0, 1.0))
    }

    pub fn ticks(&self) -> Vec<f64> {
        if self.log {
            return self.log_ticks();
        }
        let step = step(self.high);
        let count = (self.high / step + 1e-9) as usize;
        (0..=count).map(|index| index as f64 * step).collect()
    }

    /// Returns 1, 2 and 5 of each decade if there are few decades, else whole decades.
    fn log_ticks(&self) -> Vec<f64> {
        let (first, last) = (exponent(self.low), exponent(self.high));
        let digits: &[f64] = match last - first {
            ..=2 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let decades = first..=last;
        let ticks = decades.flat_map(|e| digits.iter().map(move |digit| digit * 10_f64.powi(e)));
        let within = self.low * (1.0 - 1e-9)..=self.high * (1.0 + 1e-9);
        ticks.filter(|tick| within.contains(tick)).collect()
    }
}

/// Returns a distance between ticks that gives about five of them.
fn step(high: f64) -> f64 {
    let rough = high / 5.0;
    let decade = 10_f64.powi(exponent(rough));
    let mut digits = [1.0, 2.0, 5.0].into_iter();
    let digit = digits.find(|digit| digit * decade >= rough * 0.7);
    digit.unwrap_or(10.0) * decade
}

fn exponent(value: f64) -> i32 {
    (value.log10() + 1e-9).floor() as i32
}

fn round_below(value: f64) -> f64 {
    let decade = 10_f64.powi(exponent(value));
    let digits = [5.0, 2.0, 1.0].into_iter();
    let digit = digits
        .map(|d| d * decade)
        .find(|round| *round <= value * (1.0 + 1e-9));
    digit.unwrap_or(decade)
}

fn round_above(value: f64) -> f64 {
    let decade = 10_f64.powi(exponent(value));
    let digits = [1.0, 2.0, 5.0].into_iter();
    let digit = digits
        .map(|d| d * decade)
        .find(|round| *round >= value * (1.0 - 1e-9));
    digit.unwrap_or(10.0 * decade)
}

/// Writes `1500` as `1.5k`: an axis has no room for zeros.
pub fn tick_label(value: f64) -> String {
    let (value, suffix) = match value.abs() {
        size if size >= 1e9 => (value / 1e9, "G"),
        size if size >= 1e6 => (value / 1e6, "M"),
        size if size >= 1e3 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(values: &[f64]) -> Vec<String> {
        let scale = Scale::fit(values.iter().copied());
        scale.ticks().into_iter().map(tick_label).collect()
    }

    #[test]
    fn ticks_are_round_and_start_at_zero() {
        assert_eq!(labels(&[3.0, 47.0]), ["0", "10", "20", "30", "40", "50"]);
        assert_eq!(labels(&[0.9]), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        assert_eq!(
            labels(&[1_200.0]),
            ["0", "200", "400", "600", "800", "1k", "1.2k"]
        );
        assert_eq!(labels(&[100.0]), ["0", "20", "40", "60", "80", "100"]);
    }

    #[test]
    fn values_that_span_decades_have_decades() {
        let expected = ["20", "50", "100", "200", "500", "1k"];
        assert_eq!(labels(&[25.0, 900.0]), expected);
        assert_eq!(labels(&[0.3, 40_000.0]), ["1", "10", "100", "1k", "10k"]);
    }

    #[test]
    fn nothing_and_zero_have_an_axis_too() {
        assert_eq!(labels(&[]), labels(&[1.0]));
        assert_eq!(labels(&[0.0, 0.0]), labels(&[1.0]));
    }

    #[test]
    fn places_are_where_the_value_is() {
        let linear = Scale::fit([0.0, 10.0].into_iter());
        assert_eq!(linear.place(5.0), Some(0.5));
        let log = Scale::fit([1.0, 10_000.0].into_iter());
        assert!((log.place(100.0).unwrap() - 0.5).abs() < 1e-9);
        assert_eq!(log.place(0.0), None, "zero has no logarithm");
        assert_eq!(linear.place(f64::NAN), None);
    }
}
