use super::per_s;
use super::redis_info::RedisInfo;
use crate::model::KeyspaceSample;
use std::collections::BTreeMap;

/// Facts that the figures need and the samples do not contain.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    pub(super) before: RedisInfo,
    /// The number of counters that were made, and the server's state after that.
    pub(super) counters: Option<(u64, RedisInfo)>,
    pub(super) made: u64,
    pub(super) refused: u64,
    pub(super) made_in_ms: u64,
    /// When the last lock expires, once all are made.
    pub(super) last_death_ms: Option<u64>,
    pub(super) now: RedisInfo,
    pub(super) effort: Option<u32>,
    /// How long a scan took, and how many expired and live keys it met.
    pub(super) scan: Option<(u64, u64, u64)>,
}

/// Below this share, expired keys count as gone.
const HARDLY_ANY: f64 = 0.01;
/// The share of memory that may remain: tables shrink step by step, so it never returns completely.
const MEMORY_BACK: f64 = 0.1;

/// Returns single figures, with their unit at the end of the name.
pub(super) fn figures(facts: &Facts, samples: &[KeyspaceSample]) -> BTreeMap<String, f64> {
    let mut figures = BTreeMap::new();
    let mut put = |name: &str, figure: f64| {
        figures.insert(name.to_owned(), figure);
    };
    let without_locks = facts.counters.map_or(facts.before, |(_, seen)| seen);
    put("used_memory_before_bytes", facts.before.used_memory as f64);
    let peak = |memory: fn(&KeyspaceSample) -> u64| samples.iter().map(memory).max().unwrap_or(0);
    let peak_used = peak(|sample| sample.used_memory);
    put("used_memory_peak_bytes", peak_used as f64);
    put(
        "used_memory_rss_peak_bytes",
        peak(|sample| sample.used_memory_rss) as f64,
    );
    put("used_memory_last_bytes", facts.now.used_memory as f64);
    put(
        "made_per_s",
        per_s(facts.made + facts.refused, facts.made_in_ms),
    );
    put("refused_keys", facts.refused as f64);
    put(
        "evicted_keys",
        (facts.now.evicted - facts.before.evicted.min(facts.now.evicted)) as f64,
    );
    if let Some((made, after)) = facts.counters {
        let grown = after.used_memory.saturating_sub(facts.before.used_memory);
        put("counters_bytes_per_key", grown as f64 / made.max(1) as f64);
    }
    let counters = facts.counters.map_or(0, |(made, _)| made);
    let bytes_per_key = bytes_per_key(&without_locks, counters, samples);
    if let Some(bytes) = bytes_per_key {
        put("bytes_per_key", bytes);
    }
    let dead = samples.iter().map(dead_of).max().unwrap_or(0);
    put("dead_max_keys", dead as f64);
    if let Some(bytes) = bytes_per_key {
        put("dead_memory_max_bytes", dead as f64 * bytes);
    }
    put("dead_left_keys", samples.last().map_or(0, dead_of) as f64);
    if let Some((max, mean)) = expired_per_s(samples, |sample| sample.expired) {
        put("expired_per_s_max", max);
        put("expired_per_s_mean", mean);
    }
    // These leave out the keys that only a scan met.
    if let Some((max, mean)) = expired_per_s(samples, |sample| sample.expired_active) {
        put("expired_active_per_s_max", max);
        put("expired_active_per_s_mean", mean);
    }
    if let Some(death_ms) = facts.last_death_ms {
        let hardly_any = (facts.made as f64 * HARDLY_ANY) as u64;
        let since = |is_over: &dyn Fn(&KeyspaceSample) -> bool| {
            let mut later = samples.iter().filter(|sample| sample.at_ms >= death_ms);
            let over = later.find(|sample| is_over(sample))?;
            Some((over.at_ms - death_ms) as f64 / 1000.0)
        };
        if let Some(seconds) = since(&|sample| dead_of(sample) <= hardly_any) {
            put("dead_seconds", seconds);
        }
        let grown = peak_used.saturating_sub(without_locks.used_memory) as f64;
        let back = without_locks.used_memory + (grown * MEMORY_BACK) as u64;
        if let Some(seconds) = since(&|sample| sample.used_memory <= back) {
            put("memory_back_seconds", seconds);
        }
    }
    let (now, before) = (facts.now, facts.before);
    let cpu_ms = now.expire_cpu_ms.saturating_sub(before.expire_cpu_ms);
    put("expire_cycle_cpu_ms", cpu_ms as f64);
    let capped = now.time_cap_reached.saturating_sub(before.time_cap_reached);
    put("expire_time_cap_reached_times", capped as f64);
    if let Some(effort) = facts.effort {
        put("active_expire_effort", effort.into());
    }
    if let Some((ms, reclaimed, found)) = facts.scan {
        put("scan_seconds", ms as f64 / 1000.0);
        put("scan_reclaimed_keys", reclaimed as f64);
        put("scan_found_keys", found as f64);
    }
    figures
}

/// Returns the bytes per lock at the moment with the most locks: an empty table costs memory
/// too, which should not be divided among few keys.
fn bytes_per_key(without: &RedisInfo, counters: u64, samples: &[KeyspaceSample]) -> Option<f64> {
    let most = samples.iter().max_by_key(|sample| sample.present)?;
    let locks = most
        .present
        .checked_sub(counters)
        .filter(|locks| *locks > 0)?;
    let grown = most.used_memory.saturating_sub(without.used_memory);
    Some(grown as f64 / locks as f64)
}

fn dead_of(sample: &KeyspaceSample) -> u64 {
    sample.present.saturating_sub(sample.alive)
}

/// Returns the highest rate between two samples, and the mean rate from the first to the last
/// sample in which keys expired.
fn expired_per_s(
    samples: &[KeyspaceSample],
    expired: fn(&KeyspaceSample) -> u64,
) -> Option<(f64, f64)> {
    let pairs = || {
        samples
            .windows(2)
            .filter(|pair| expired(&pair[0]) < expired(&pair[1]))
    };
    let rate = |from: &KeyspaceSample, to: &KeyspaceSample| {
        let gone = expired(to).saturating_sub(expired(from));
        per_s(gone, to.at_ms - from.at_ms)
    };
    let max = pairs().map(|pair| rate(&pair[0], &pair[1]));
    let max = max.fold(0.0, f64::max);
    let (first, last) = (&pairs().next()?[0], &pairs().next_back()?[1]);
    Some((max, rate(first, last)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_ms: u64, used: u64, present: u64, alive: u64, expired: u64) -> KeyspaceSample {
        KeyspaceSample {
            at_ms,
            used_memory: used,
            present,
            alive,
            expired,
            ..KeyspaceSample::default()
        }
    }

    #[test]
    fn figures_follow_from_the_samples() {
        let before = RedisInfo {
            used_memory: 1_000,
            ..RedisInfo::default()
        };
        let facts = Facts {
            before,
            made: 1_000,
            made_in_ms: 500,
            last_death_ms: Some(1_500),
            now: before,
            ..Facts::default()
        };
        let samples = [
            sample(500, 101_000, 1_000, 1_000, 0),
            sample(1_400, 101_000, 1_000, 100, 0),
            sample(1_500, 91_000, 900, 0, 100),
            sample(2_500, 12_000, 100, 0, 900),
            sample(3_500, 2_000, 5, 0, 995),
        ];
        let figures = figures(&facts, &samples);
        for (name, expected) in [
            ("bytes_per_key", 100.0),
            ("made_per_s", 2_000.0),
            ("used_memory_peak_bytes", 101_000.0),
            ("dead_max_keys", 900.0),
            ("dead_memory_max_bytes", 90_000.0),
            ("dead_left_keys", 5.0),
            ("dead_seconds", 2.0),
            ("memory_back_seconds", 2.0),
            ("expired_per_s_max", 1_000.0),
        ] {
            assert_eq!(figures.get(name), Some(&expected), "{name}");
        }
        let mean = figures["expired_per_s_mean"];
        assert!((mean - 995.0 / 2.1).abs() < 0.01, "{mean}");
        assert!(!figures.contains_key("counters_bytes_per_key"));
    }

    #[test]
    fn what_was_not_reached_has_no_figure() {
        let facts = Facts {
            made: 100,
            ..Facts::default()
        };
        let figures = figures(&facts, &[sample(10, 500, 50, 50, 0)]);
        for name in ["dead_seconds", "memory_back_seconds", "expired_per_s_max"] {
            assert!(!figures.contains_key(name), "{name}");
        }
        assert_eq!(figures["bytes_per_key"], 10.0);
    }

    #[test]
    fn what_a_scan_met_is_not_the_work_of_the_cycle() {
        let seen = |at_ms, expired, expired_active| KeyspaceSample {
            expired_active,
            ..sample(at_ms, 0, 0, 0, expired)
        };
        let samples = [
            seen(0, 0, 0),
            seen(1_000, 100, 100),
            seen(2_000, 400, 400),
            seen(3_000, 5_000, 400),
        ];
        let figures = figures(&Facts::default(), &samples);
        assert_eq!(figures["expired_per_s_max"], 4_600.0);
        assert_eq!(figures["expired_active_per_s_max"], 300.0);
        assert_eq!(figures["expired_active_per_s_mean"], 200.0);
    }

    #[test]
    fn counters_are_not_laid_on_the_locks() {
        let with_counters = RedisInfo {
            used_memory: 5_000,
            ..RedisInfo::default()
        };
        let facts = Facts {
            counters: Some((100, with_counters)),
            made: 100,
            ..Facts::default()
        };
        let figures = figures(&facts, &[sample(10, 15_000, 200, 200, 0)]);
        assert_eq!(figures["counters_bytes_per_key"], 50.0);
        assert_eq!(figures["bytes_per_key"], 100.0);
    }
}
