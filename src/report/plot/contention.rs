//! The cost of more contenders: latency and throughput.

use super::*;

/// The name of a percentile, and how it is read.
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
    // All three have one scale, because they are compared with each other.
    let values = of_all.flat_map(|step| percentiles.map(|(_, of)| millis(step, of)));
    let scale = Scale::fit(values.collect::<Vec<f64>>().iter().copied());
    let panel = |(name, of): Percentile| {
        let series = cases.iter().enumerate().map(|(colour, (case, steps))| {
            let granted = steps.iter().filter(measured);
            let points = granted.map(|step| (f64::from(step.contenders), millis(step, of)));
            Series::new(named(case, steps), colour, Stroke::Dotted, points)
        });
        let y = Axis::new("acquire latency (ms)", scale);
        Panel::new(name, contenders(cases), y, series.collect())
    };
    Picture {
        title: "Acquire latency by contenders",
        note: "From the intended arrival to the grant, of those who were granted.",
        panels: percentiles.map(panel).into(),
        columns: 3,
        panel_height: 330.0,
    }
}

pub fn throughput(cases: &[(&str, &[ContendStep])]) -> Picture {
    let at = |step: &ContendStep| f64::from(step.contenders);
    let mut series = Vec::new();
    for (colour, (case, steps)) in cases.iter().enumerate() {
        let measured = steps.iter().map(|step| (at(step), step.throughput_per_s));
        let name = named(case, steps);
        series.push(Series::new(name, colour, Stroke::Dotted, measured));
        let ceiling = steps.iter();
        let ceiling = ceiling.filter_map(|step| Some((at(step), step.ceiling_per_s?)));
        // It has no name in the legend: the note explains the dashed lines.
        series.push(Series::new("", colour, Stroke::Dashed, ceiling));
    }
    series.retain(|series| !series.points.is_empty());
    let values = series.iter().flat_map(|series| &series.points);
    let scale = Scale::fit(values.map(|(_, y)| *y));
    let y = Axis::new("acquisitions per second", scale);
    Picture {
        title: "Throughput by contenders",
        note: "Dashed: the ceiling, 1 / (grant to release + release to next grant) for each key.",
        panels: vec![Panel::new("", contenders(cases), y, series)],
        columns: 1,
        panel_height: 420.0,
    }
}

fn contenders(cases: &[(&str, &[ContendStep])]) -> Axis {
    let steps = cases.iter().flat_map(|(_, steps)| steps.iter());
    let scale = Scale::spread(steps.map(|step| f64::from(step.contenders)));
    Axis::new("contenders", scale)
}
