//! How many wanted the lock, moment by moment.

use super::named;
use super::panel::{Axis, Panel, Series, Stroke};
use super::picture::Picture;
use super::scale::Scale;
use crate::model::{ContendStep, Queued};

/// `None` where nothing was sampled.
pub fn queue(cases: &[(&str, &[ContendStep])]) -> Option<Picture> {
    let panels: Vec<Panel> = cases
        .iter()
        .filter_map(|(case, steps)| panel(case, steps))
        .collect();
    if panels.is_empty() {
        return None;
    }
    Some(Picture {
        title: "Queue over time".to_owned(),
        note: "Solid: contenders that asked and hold nothing yet. Dashed: arrivals for which no contender was free.".to_owned(),
        columns: panels.len().min(2),
        panels,
        panel_height: 280.0,
    })
}

fn panel(case: &str, steps: &[ContendStep]) -> Option<Panel> {
    let mut series = Vec::new();
    for (colour, step) in steps.iter().enumerate() {
        let points = |of: fn(&Queued) -> u64| {
            let moments = step.queue.iter();
            moments.map(move |at| (at.at_ms as f64 / 1e3, of(at) as f64))
        };
        let name = format!("{} contenders", step.contenders);
        series.push(Series {
            name: format!("{name}, waiting"),
            colour,
            stroke: Stroke::Plain,
            points: points(|at| at.waiting).collect(),
        });
        if step.queue.iter().any(|at| at.backlog > 0) {
            series.push(Series {
                name: format!("{name}, backlog"),
                colour,
                stroke: Stroke::Dashed,
                points: points(|at| at.backlog).collect(),
            });
        }
    }
    series.retain(|series| !series.points.is_empty());
    let points = || series.iter().flat_map(|series| &series.points);
    points().next()?;
    let (seconds, high) = (points().map(|(x, _)| *x), points().map(|(_, y)| *y));
    Some(Panel {
        title: named(case, steps),
        x: Axis {
            label: "time since the step began (s)".to_owned(),
            scale: Scale::up_to(seconds.fold(0.0, f64::max)),
        },
        y: Axis {
            label: "arrivals".to_owned(),
            scale: Scale::linear(high),
        },
        series,
        marks: Vec::new(),
        diagonal: false,
    })
}
