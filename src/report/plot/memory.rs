//! The memory that a great many keys need, and for how long.

use super::*;

const MIB: f64 = 1_048_576.0;

/// Returns the plot; `None` if there are no samples.
pub fn memory(cases: &[(&str, &KeyspaceRecord)]) -> Option<Picture> {
    let mut panels = Vec::new();
    for (case, record) in cases {
        let redis = record
            .redis
            .iter()
            .filter(|redis| !redis.samples.is_empty());
        panels.extend(redis.flat_map(|redis| redis_panels(case, &redis.samples)));
        let etcd = record.etcd.iter().filter(|etcd| !etcd.samples.is_empty());
        panels.extend(etcd.flat_map(|etcd| etcd_panels(case, &etcd.samples)));
    }
    if panels.is_empty() {
        return None;
    }
    Some(Picture {
        title: "Memory and keys over time",
        note: "Keys that are present and not alive are dead, and still take memory.",
        panels,
        columns: 1,
        panel_height: 280.0,
    })
}

/// The name of a curve, and how its value is read from a sample.
type Curve<S> = (&'static str, fn(&S) -> f64);

/// Returns the panels of one server, each with its title, its label and its curves.
fn panels<S, const N: usize>(
    case: &str,
    samples: &[S],
    when: fn(&S) -> (u64, &str),
    all: [(&str, &'static str, &[Curve<S>]); N],
) -> [Panel; N] {
    // Every curve of a server has its own colour.
    let mut colour = 0;
    all.map(|(title, label, curves)| {
        let series = curves.iter().map(|(name, of)| {
            let points = samples
                .iter()
                .map(|one| (when(one).0 as f64 / 1e3, of(one)));
            colour += 1;
            Series::new(*name, colour - 1, Stroke::Plain, points)
        });
        let since = "time since the first key (s)";
        let panel = Panel::over_time(format!("{case}: {title}"), since, label, series.collect());
        Panel {
            marks: phases(samples.iter().map(when)),
            ..panel
        }
    })
}

fn redis_panels(case: &str, samples: &[KeyspaceSample]) -> [Panel; 2] {
    let memory: [Curve<KeyspaceSample>; 2] = [
        ("used_memory", |s| s.used_memory as f64 / MIB),
        ("used_memory_rss", |s| s.used_memory_rss as f64 / MIB),
    ];
    let keys: [Curve<KeyspaceSample>; 2] = [
        ("keys present", |s| s.present as f64),
        ("keys alive", |s| s.alive as f64),
    ];
    let all = [
        ("memory", "memory (MiB)", &memory[..]),
        ("keys", "keys", &keys[..]),
    ];
    panels(case, samples, |s| (s.at_ms, &s.phase), all)
}

fn etcd_panels(case: &str, samples: &[EtcdSample]) -> [Panel; 2] {
    let memory: [Curve<EtcdSample>; 3] = [
        ("database", |s| s.db_size as f64 / MIB),
        ("database in use", |s| s.db_size_in_use as f64 / MIB),
        ("resident memory", |s| s.resident_memory as f64 / MIB),
    ];
    let growth: [Curve<EtcdSample>; 2] = [
        ("leases", |s| s.leases as f64),
        ("revision", |s| s.revision as f64),
    ];
    let all = [
        ("database and memory", "size (MiB)", &memory[..]),
        ("leases", "count", &growth[..]),
    ];
    panels(case, samples, |s| (s.at_ms, &s.phase), all)
}

fn phases<'a>(samples: impl Iterator<Item = (u64, &'a str)>) -> Vec<(f64, String)> {
    let mut begins: Vec<(f64, String)> = Vec::new();
    for (at_ms, phase) in samples {
        if begins.last().is_none_or(|(_, last)| last != phase) {
            begins.push((at_ms as f64 / 1e3, phase.to_owned()));
        }
    }
    begins
}
