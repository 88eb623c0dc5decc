//! What a great many keys take, and for how long.

use super::panel::{Axis, Panel, Series, Stroke};
use super::picture::Picture;
use super::scale::Scale;
use crate::model::{EtcdSample, KeyspaceRecord, KeyspaceSample};

const MIB: f64 = 1_048_576.0;

/// `None` where nothing was sampled.
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
        title: "Memory and keys over time".to_owned(),
        note: "Keys that are present and not alive are dead, and still take memory.".to_owned(),
        panels,
        columns: 1,
        panel_height: 280.0,
    })
}

/// What is read off a sample, under its name.
type Curve<S> = (&'static str, fn(&S) -> f64);

fn redis_panels(case: &str, samples: &[KeyspaceSample]) -> [Panel; 2] {
    let begins = phases(samples.iter().map(|s| (s.at_ms, s.phase.as_str())));
    let memory: [Curve<KeyspaceSample>; 2] = [
        ("used_memory", |s| s.used_memory as f64 / MIB),
        ("used_memory_rss", |s| s.used_memory_rss as f64 / MIB),
    ];
    let keys: [Curve<KeyspaceSample>; 2] = [
        ("keys present", |s| s.present as f64),
        ("keys alive", |s| s.alive as f64),
    ];
    let at = |sample: &KeyspaceSample| sample.at_ms;
    let memory = curves(samples, at, &memory, 0);
    let keys = curves(samples, at, &keys, 2);
    [
        panel(format!("{case}: memory"), "memory (MiB)", memory, &begins),
        panel(format!("{case}: keys"), "keys", keys, &begins),
    ]
}

fn etcd_panels(case: &str, samples: &[EtcdSample]) -> [Panel; 2] {
    let begins = phases(samples.iter().map(|s| (s.at_ms, s.phase.as_str())));
    let memory: [Curve<EtcdSample>; 3] = [
        ("database", |s| s.db_size as f64 / MIB),
        ("database in use", |s| s.db_size_in_use as f64 / MIB),
        ("resident memory", |s| s.resident_memory as f64 / MIB),
    ];
    let growth: [Curve<EtcdSample>; 2] = [
        ("leases", |s| s.leases as f64),
        ("revision", |s| s.revision as f64),
    ];
    let at = |sample: &EtcdSample| sample.at_ms;
    let memory = curves(samples, at, &memory, 0);
    let growth = curves(samples, at, &growth, 3);
    let title = format!("{case}: database and memory");
    [
        panel(title, "size (MiB)", memory, &begins),
        panel(format!("{case}: leases"), "count", growth, &begins),
    ]
}

fn curves<S>(
    samples: &[S],
    at_ms: fn(&S) -> u64,
    curves: &[Curve<S>],
    first_colour: usize,
) -> Vec<Series> {
    let curves = curves.iter().zip(first_colour..);
    let series = curves.map(|((name, of), colour)| Series {
        name: (*name).to_owned(),
        colour,
        stroke: Stroke::Plain,
        points: samples
            .iter()
            .map(|sample| (at_ms(sample) as f64 / 1e3, of(sample)))
            .collect(),
    });
    series.collect()
}

fn panel(title: String, y: &str, series: Vec<Series>, begins: &[(f64, String)]) -> Panel {
    let points = || series.iter().flat_map(|series| &series.points);
    let (seconds, high) = (points().map(|(x, _)| *x), points().map(|(_, y)| *y));
    Panel {
        title,
        x: Axis {
            label: "time since the first key (s)".to_owned(),
            scale: Scale::up_to(seconds.fold(0.0, f64::max)),
        },
        y: Axis {
            label: y.to_owned(),
            scale: Scale::linear(high),
        },
        series,
        marks: begins.to_vec(),
        diagonal: false,
    }
}

/// When each phase began.
fn phases<'a>(samples: impl Iterator<Item = (u64, &'a str)>) -> Vec<(f64, String)> {
    let mut begins: Vec<(f64, String)> = Vec::new();
    for (at_ms, phase) in samples {
        if begins.last().is_none_or(|(_, last)| last != phase) {
            begins.push((at_ms as f64 / 1e3, phase.to_owned()));
        }
    }
    begins
}
