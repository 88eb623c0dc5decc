use super::least_squares::{FittedLine, least_squares};
use super::per_s;
use crate::model::{EtcdSample, format_count};
use std::collections::BTreeMap;

/// Facts that the figures need and the samples do not contain.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    pub(super) granted: u64,
    pub(super) granted_in_ms: u64,
    /// How many had been granted at the previous sample, and when that was.
    pub(super) last_seen: (u64, u64),
    /// The samples while leases were granted and none had expired, each with the number granted
    /// by then.
    pub(super) growth: Vec<(u64, EtcdSample)>,
    /// How many were revoked, and in how many milliseconds.
    pub(super) revoked: Option<(u64, u64)>,
}

impl Facts {
    fn granted_per_s(&self) -> f64 {
        per_s(self.granted, self.granted_in_ms)
    }

    /// Fits how much a value grows with each lease and its key.
    fn law(&self, value: fn(&EtcdSample) -> f64) -> Option<FittedLine> {
        let point = |(granted, sample): &(u64, EtcdSample)| (*granted as f64, value(sample));
        let points: Vec<(f64, f64)> = self.growth.iter().map(point).collect();
        least_squares(&points)
    }
}

/// Returns the bytes in use, because those grow with each key. The file grows in steps.
fn in_use(sample: &EtcdSample) -> f64 {
    sample.db_size_in_use as f64
}

/// Returns single figures, with their unit at the end of the name.
pub(super) fn figures(facts: &Facts, samples: &[EtcdSample]) -> BTreeMap<String, f64> {
    let mut figures = BTreeMap::new();
    let mut put = |name: &str, figure: Option<f64>| {
        if let Some(figure) = figure {
            figures.insert(name.to_owned(), figure);
        }
    };
    let law = facts.law(in_use);
    put("granted_per_s", Some(facts.granted_per_s()));
    put("bytes_per_key", law.map(|line| line.slope));
    put("growth_r_squared_ratio", law.map(|line| line.r_squared));
    let revisions = facts.law(|sample| sample.revision as f64);
    put("revisions_per_key", revisions.map(|line| line.slope));
    if facts
        .growth
        .iter()
        .all(|(_, sample)| sample.resident_memory > 0)
    {
        let memory = facts.law(|sample| sample.resident_memory as f64);
        put("resident_bytes_per_key", memory.map(|line| line.slope));
    }
    let peak = |value: fn(&EtcdSample) -> f64| samples.iter().map(value).reduce(f64::max);
    put("db_size_peak_bytes", peak(|sample| sample.db_size as f64));
    put(
        "resident_memory_peak_bytes",
        peak(|sample| sample.resident_memory as f64),
    );
    let at = |phase: &str| samples.iter().rfind(|sample| sample.phase == phase);
    put("expired_per_s", expired_per_s(samples));
    put(
        "revoked_per_s",
        facts.revoked.map(|(count, ms)| per_s(count, ms)),
    );
    if let Some(compacted) = at("compacted") {
        let earlier = samples
            .iter()
            .rfind(|sample| sample.at_ms < compacted.at_ms);
        let freed = |value: fn(&EtcdSample) -> f64| {
            earlier.map(|earlier| value(earlier) - value(compacted))
        };
        put("compaction_frees_inside_bytes", freed(in_use));
        put(
            "compaction_gives_back_bytes",
            freed(|sample| sample.db_size as f64),
        );
        if let Some(defragmented) = at("defragmented") {
            let back = (compacted.db_size - defragmented.db_size) as f64;
            put("defragmentation_gives_back_bytes", Some(back));
            put("db_size_last_bytes", Some(defragmented.db_size as f64));
        }
    }
    figures
}

/// Returns the rate from the first to the last sample in which keys expired.
fn expired_per_s(samples: &[EtcdSample]) -> Option<f64> {
    let expiring: Vec<&EtcdSample> = samples.iter().filter(|s| s.phase == "expiring").collect();
    let fewer = || {
        expiring
            .windows(2)
            .filter(|pair| pair[1].leases < pair[0].leases)
    };
    let (first, last) = (fewer().next()?[0], fewer().next_back()?[1]);
    Some(per_s(first.leases - last.leases, last.at_ms - first.at_ms))
}

const TEN_MILLION: f64 = 10_000_000.0;
const DEFAULT_QUOTA_BYTES: f64 = 2.0 * GIB;
const GIB: f64 = (1u64 << 30) as f64;

/// Describes the law of growth, and what follows for ten million if it holds that far.
pub(super) fn extrapolation(facts: &Facts) -> String {
    let law = facts.law(in_use).filter(|law| law.slope > 0.0);
    let Some(law) = law else {
        return "No extrapolation: there are too few samples for a law of growth.".to_owned();
    };
    let at_ten_million = law.at_zero + law.slope * TEN_MILLION;
    let within_quota = ((DEFAULT_QUOTA_BYTES - law.at_zero) / law.slope).max(0.0);
    let per_s = facts.granted_per_s();
    format!(
        "Measured: with each lease and its key, {:.0} bytes more of the database are in use \
         (least squares over {} samples up to {} leases, r² {:.3}), at {per_s:.0} leases a second. \
         Extrapolated, not measured: ten million would need {:.1} GiB before compaction and \
         {:.0} minutes to be granted; etcd's default quota of 2 GiB would be reached at about {} leases.",
        law.slope,
        facts.growth.len(),
        format_count(facts.growth.last().map_or(0, |(granted, _)| *granted)),
        law.r_squared,
        at_ten_million / GIB,
        TEN_MILLION / per_s.max(0.001) / 60.0,
        format_count(within_quota as u64),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(phase: &str, at_ms: u64, leases: u64, db_size: i64, in_use: i64) -> EtcdSample {
        EtcdSample {
            at_ms,
            phase: phase.to_owned(),
            leases,
            revision: 1 + leases as i64,
            db_size,
            db_size_in_use: in_use,
            ..EtcdSample::default()
        }
    }

    fn facts() -> Facts {
        let growth = [(0, 1_000), (50, 26_000), (100, 51_000)];
        let growth = growth.map(|(granted, in_use)| {
            let sample = sample("granting", granted, granted, 65_536, in_use);
            (granted, sample)
        });
        Facts {
            granted: 100,
            granted_in_ms: 1_000,
            growth: growth.into(),
            ..Facts::default()
        }
    }

    #[test]
    fn figures_follow_from_the_samples() {
        let samples = [
            sample("granting", 1_000, 100, 65_536, 51_000),
            sample("expiring", 2_000, 100, 65_536, 51_000),
            sample("expiring", 3_000, 40, 65_536, 52_000),
            sample("expiring", 4_000, 0, 65_536, 53_000),
            sample("expiring", 5_000, 0, 65_536, 53_000),
            sample("compacted", 6_000, 0, 65_536, 3_000),
            sample("defragmented", 7_000, 0, 4_096, 3_000),
        ];
        let figures = figures(&facts(), &samples);
        for (name, expected) in [
            ("granted_per_s", 100.0),
            ("bytes_per_key", 500.0),
            ("revisions_per_key", 1.0),
            ("expired_per_s", 50.0),
            ("compaction_frees_inside_bytes", 50_000.0),
            ("compaction_gives_back_bytes", 0.0),
            ("defragmentation_gives_back_bytes", 61_440.0),
            ("db_size_last_bytes", 4_096.0),
        ] {
            assert_eq!(figures.get(name), Some(&expected), "{name}");
        }
        assert!(
            !figures.contains_key("resident_bytes_per_key"),
            "nobody said"
        );
    }

    #[test]
    fn an_extrapolation_says_that_it_is_one() {
        let text = extrapolation(&facts());
        for part in [
            "500 bytes",
            "100 leases,",
            "not measured",
            "4.7 GiB",
            "4,294,965 leases",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(extrapolation(&Facts::default()).starts_with("No extrapolation"));
    }
}
