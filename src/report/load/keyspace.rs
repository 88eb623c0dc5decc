//! The results of a great many keys: single figures, and some samples.

use super::words::cut;
use super::*;

/// The number of samples shown; the result has all of them.
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

const REDIS: [Column<KeyspaceSample>; 9] = [
    ("at", |sample| millis(sample.at_ms)),
    ("phase", |sample| cut(&sample.phase, 16)),
    ("used memory", |sample| size(sample.used_memory as f64)),
    ("rss", |sample| size(sample.used_memory_rss as f64)),
    ("present", |sample| sample.present.to_string()),
    ("alive", |sample| sample.alive.to_string()),
    ("expired", |sample| sample.expired.to_string()),
    ("by the cycle", |sample| sample.expired_active.to_string()),
    ("stale", |sample| percent(sample.expired_stale_share)),
];

const ETCD: [Column<EtcdSample>; 8] = [
    ("at", |sample| millis(sample.at_ms)),
    ("phase", |sample| cut(&sample.phase, 16)),
    ("leases", |sample| sample.leases.to_string()),
    ("granted/s", |sample| figure(sample.granted_per_s)),
    ("revision", |sample| sample.revision.to_string()),
    ("database", |sample| size(sample.db_size as f64)),
    ("in use", |sample| size(sample.db_size_in_use as f64)),
    ("memory", |sample| size(sample.resident_memory as f64)),
];

fn redis_table(redis: &RedisKeyspace, width: usize) -> String {
    let (ttl, made_in) = (millis(redis.ttl_ms), millis(redis.made_in_ms));
    let line = format!("{} keys with a TTL of {ttl}, made in {made_in}", redis.keys);
    let moments = moments(&REDIS, &redis.samples, |sample| &sample.phase, width);
    wrapped(&line, INDENT, width) + &figures(&redis.figures, width) + &moments
}

fn etcd_table(etcd: &EtcdGrowth, width: usize) -> String {
    let line = format!(
        "{} leases with a TTL of {}",
        etcd.leases,
        millis(etcd.ttl_ms)
    );
    let moments = moments(&ETCD, &etcd.samples, |sample| &sample.phase, width);
    let mut text = wrapped(&line, INDENT, width) + &figures(&etcd.figures, width) + &moments;
    if !etcd.extrapolation.is_empty() {
        let line = format!("extrapolated: {}", etcd.extrapolation);
        text += &wrapped(&line, INDENT, width);
    }
    text
}

fn millis(ms: u64) -> String {
    time(ms as f64 * 1e3)
}

fn moments<S>(columns: &[Column<S>], samples: &[S], phase: fn(&S) -> &str, width: usize) -> String {
    let phases: Vec<&str> = samples.iter().map(phase).collect();
    let telling = telling(&phases);
    let grid = Grid::of(columns, telling.iter().map(|index| &samples[*index]));
    text_of(&grid, width)
}

fn figures(figures: &BTreeMap<String, f64>, width: usize) -> String {
    let mut grid = Grid::new(&["figure", "value"]);
    for (name, value) in figures {
        grid.row(vec![name.clone(), Unit::of(name).write(*value)]);
    }
    text_of(&grid, width)
}

fn text_of(grid: &Grid, width: usize) -> String {
    if grid.is_empty() {
        return String::new();
    }
    grid.text(INDENT, width)
}

/// Returns the first and last sample, the first of each phase, and evenly some between.
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
