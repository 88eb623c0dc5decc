use crate::model::Latency;
use hdrhistogram::Histogram;

/// Durations from a microsecond to an hour, to three digits. Others count as the nearest bound.
pub(super) struct Timings(Histogram<u64>);

const SHORTEST_US: u64 = 1;
const LONGEST_US: u64 = 60 * 60 * 1_000_000;
const DIGITS: u8 = 3;

impl Default for Timings {
    fn default() -> Timings {
        let histogram = Histogram::new_with_bounds(SHORTEST_US, LONGEST_US, DIGITS);
        Timings(histogram.expect("these bounds are in order, and three digits are allowed"))
    }
}

impl Timings {
    pub(super) fn record(&mut self, from_ns: u64, to_ns: u64) {
        self.0
            .saturating_record(to_ns.saturating_sub(from_ns) / 1_000);
    }

    pub(super) fn latency(&self) -> Latency {
        if self.0.is_empty() {
            return Latency::default();
        }
        let at = |quantile| self.0.value_at_quantile(quantile);
        Latency {
            count: self.0.len(),
            mean_us: self.0.mean(),
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: self.0.max(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_exact_to_three_digits_and_nothing_is_lost_at_the_ends() {
        let mut timings = Timings::default();
        assert_eq!(timings.latency(), Latency::default());
        for ms in 1..=1_000 {
            timings.record(5, 5 + ms * 1_000_000);
        }
        let latency = timings.latency();
        assert_eq!(latency.count, 1_000);
        let is_near = |us: u64, ms: u64| us.abs_diff(ms * 1_000) <= ms;
        assert!(is_near(latency.p50_us, 500), "{latency:?}");
        assert!(is_near(latency.p99_us, 990), "{latency:?}");
        assert!(is_near(latency.max_us, 1_000), "{latency:?}");
        timings.record(7, 3);
        timings.record(0, u64::MAX);
        assert_eq!(timings.latency().count, 1_002);
        assert!(timings.latency().max_us >= LONGEST_US);
    }
}
