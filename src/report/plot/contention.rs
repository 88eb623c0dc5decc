//! What more contenders cost: how long they wait, and what they get done.

use super::named;
use super::panel::{Axis, Panel, Series, Stroke};
use super::picture::Picture;
use super::scale::Scale;
use crate::model::{ContendStep, Latency};

/// A percentile by its name, and how it is read.
type Percentile = (&'static str, fn(&Latency) -> u64);

pub fn latency(cases: &[(&str, &[ContendStep])]) -> Picture {
    let percentiles: [Percentile; 3] = [
        ("p50", |all| all.p50_us),
        ("p99", |all| all.p99_us),
        ("p999", |all| all.p999_us),
    ];
    let millis = |step: &ContendStep, of: fn(&Latency) -> u64| of(&step.acquire) as f64 / 1e3;
    let measured = |step: &&ContendStep| step.acquire.count > 0;
    let of_all = cases
        .iter()
        .flat_map(|(_, steps)| steps.iter().filter(measured));
    // One scale for all three: they are read against each other.
    let values = of_all.flat_map(|step| percentiles.map(|(_, of)| millis(step, of)));
    let scale = Scale::fit(values.collect::<Vec<f64>>().iter().copied());
    let panel = |(name, of): Percentile| {
        let series = cases.iter().enumerate().map(|(colour, (case, steps))| {
            let granted = steps.iter().filter(measured);
            let points = granted.map(|step| (f64::from(step.contenders), millis(step, of)));
            Series {
                name: named(case, steps),
                colour,
                stroke: Stroke::Dotted,
                points: points.collect(),
            }
        });
        Panel {
            title: name.to_owned(),
            x: contenders(cases),
            y: Axis {
                label: "acquire latency (ms)".to_owned(),
                scale,
            },
            series: series.collect(),
            marks: Vec::new(),
            diagonal: false,
        }
    };
    Picture {
        title: "Acquire latency by contenders".to_owned(),
        note: "From the intended arrival to the grant, of those who were granted.".to_owned(),
        panels: percentiles.map(panel).into(),
        columns: 3,
        panel_height: 330.0,
    }
}

pub fn throughput(cases: &[(&str, &[ContendStep])]) -> Picture {
    let mut series = Vec::new();
    for (colour, (case, steps)) in cases.iter().enumerate() {
        let at = |step: &ContendStep| f64::from(step.contenders);
        let measured = steps.iter().map(|step| (at(step), step.throughput_per_s));
        series.push(Series {
            name: named(case, steps),
            colour,
            stroke: Stroke::Dotted,
            points: measured.collect(),
        });
        let ceiling = steps.iter();
        let ceiling = ceiling.filter_map(|step| Some((at(step), step.ceiling_per_s?)));
        let ceiling: Vec<(f64, f64)> = ceiling.collect();
        if !ceiling.is_empty() {
            series.push(Series {
                // The note says what is dashed.
                name: String::new(),
                colour,
                stroke: Stroke::Dashed,
                points: ceiling,
            });
        }
    }
    let values = series.iter().flat_map(|series| &series.points);
    let scale = Scale::fit(values.map(|(_, y)| *y));
    let panel = Panel {
        title: String::new(),
        x: contenders(cases),
        y: Axis {
            label: "acquisitions per second".to_owned(),
            scale,
        },
        series,
        marks: Vec::new(),
        diagonal: false,
    };
    Picture {
        title: "Throughput by contenders".to_owned(),
        note: "Dashed: the ceiling, 1 / (grant to release + release to next grant) for each key."
            .to_owned(),
        panels: vec![panel],
        columns: 1,
        panel_height: 420.0,
    }
}

fn contenders(cases: &[(&str, &[ContendStep])]) -> Axis {
    let steps = cases.iter().flat_map(|(_, steps)| steps.iter());
    Axis {
        label: "contenders".to_owned(),
        scale: Scale::spread(steps.map(|step| f64::from(step.contenders))),
    }
}
