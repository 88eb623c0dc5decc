//! A great many keys: single figures, and a few moments on the way.

use super::INDENT;
use super::words::cut;
use crate::model::{EtcdGrowth, KeyspaceRecord, RedisKeyspace};
use crate::report::grid::{Grid, wrapped};
use crate::report::units::{Unit, figure, percent, size, time};
use std::collections::{BTreeMap, BTreeSet};

/// Moments shown; the result has them all.
const MOMENTS: usize = 10;

pub fn table(record: &KeyspaceRecord, width: usize) -> String {
    let mut text = String::new();
    if let Some(redis) = &record.redis {
        text += &redis_table(redis, width);
    }
    if let Some(etcd) = &record.etcd {
        text += &etcd_table(etcd, width);
    }
    text
}

fn redis_table(redis: &RedisKeyspace, width: usize) -> String {
    let line = format!(
        "{} keys with a TTL of {}, made in {}",
        redis.keys,
        time(redis.ttl_ms as f64 * 1e3),
        time(redis.made_in_ms as f64 * 1e3),
    );
    let mut grid = Grid::new(&[
        "at",
        "phase",
        "used memory",
        "rss",
        "present",
        "alive",
        "expired",
        "by the cycle",
        "stale",
    ]);
    let phases: Vec<&str> = redis.samples.iter().map(|s| s.phase.as_str()).collect();
    for sample in telling(&phases).iter().map(|index| &redis.samples[*index]) {
        grid.row(vec![
            time(sample.at_ms as f64 * 1e3),
            cut(&sample.phase, 16),
            size(sample.used_memory as f64),
            size(sample.used_memory_rss as f64),
            sample.present.to_string(),
            sample.alive.to_string(),
            sample.expired.to_string(),
            sample.expired_active.to_string(),
            percent(sample.expired_stale_share),
        ]);
    }
    wrapped(&line, INDENT, width) + &figures(&redis.figures, width) + &moments(&grid, width)
}

fn etcd_table(etcd: &EtcdGrowth, width: usize) -> String {
    let ttl = time(etcd.ttl_ms as f64 * 1e3);
    let line = format!("{} leases with a TTL of {ttl}", etcd.leases);
    let mut grid = Grid::new(&[
        "at",
        "phase",
        "leases",
        "granted/s",
        "revision",
        "database",
        "in use",
        "memory",
    ]);
    let phases: Vec<&str> = etcd.samples.iter().map(|s| s.phase.as_str()).collect();
    for sample in telling(&phases).iter().map(|index| &etcd.samples[*index]) {
        grid.row(vec![
            time(sample.at_ms as f64 * 1e3),
            cut(&sample.phase, 16),
            sample.leases.to_string(),
            figure(sample.granted_per_s),
            sample.revision.to_string(),
            size(sample.db_size as f64),
            size(sample.db_size_in_use as f64),
            size(sample.resident_memory as f64),
        ]);
    }
    let mut text =
        wrapped(&line, INDENT, width) + &figures(&etcd.figures, width) + &moments(&grid, width);
    if !etcd.extrapolation.is_empty() {
        let line = format!("extrapolated: {}", etcd.extrapolation);
        text += &wrapped(&line, INDENT, width);
    }
    text
}

fn moments(grid: &Grid, width: usize) -> String {
    match grid.is_empty() {
        true => String::new(),
        false => grid.text(INDENT, width),
    }
}

fn figures(figures: &BTreeMap<String, f64>, width: usize) -> String {
    if figures.is_empty() {
        return String::new();
    }
    let mut grid = Grid::new(&["figure", "value"]);
    for (name, value) in figures {
        grid.row(vec![name.clone(), Unit::of(name).write(*value)]);
    }
    grid.text(INDENT, width)
}

/// The first and last moment, the first of each phase, and evenly some between.
fn telling(phases: &[&str]) -> BTreeSet<usize> {
    let begins = |index: &usize| *index == 0 || phases[*index] != phases[index - 1];
    let mut chosen: BTreeSet<usize> = (0..phases.len()).filter(begins).take(MOMENTS).collect();
    chosen.extend(phases.len().checked_sub(1));
    let room = MOMENTS.saturating_sub(chosen.len());
    if room > 0 {
        let evenly = (1..=room).map(|part| part * phases.len() / (room + 1));
        chosen.extend(evenly.filter(|index| *index < phases.len()));
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phase_the_end_and_some_between_are_shown() {
        let mut phases = vec!["filling"; 40];
        phases.extend(["alive"; 50]);
        phases.extend(["expiring"; 10]);
        let shown = telling(&phases);
        assert!([0, 40, 90, 99].iter().all(|index| shown.contains(index)));
        assert!(shown.len() <= MOMENTS, "{shown:?}");
        assert!(telling(&[]).is_empty());
        assert_eq!(telling(&["alive"]).len(), 1);
    }
}
