//! The number of arrivals that wanted the lock, over time.

use super::*;

/// Returns the plot; `None` if there are no samples.
pub fn queue(cases: &[(&str, &[ContendStep])]) -> Option<Picture> {
    let panels: Vec<Panel> = cases
        .iter()
        .filter_map(|(case, steps)| panel(case, steps))
        .collect();
    if panels.is_empty() {
        return None;
    }
    Some(Picture {
        title: "Queue over time",
        note: "Solid: contenders that asked and hold nothing yet. Dashed: arrivals for which no contender was free.",
        columns: panels.len().min(2),
        panels,
        panel_height: 280.0,
    })
}

fn panel(case: &str, steps: &[ContendStep]) -> Option<Panel> {
    let mut series = Vec::new();
    for (colour, step) in steps.iter().enumerate() {
        let mut add = |what: &str, stroke: Stroke, of: fn(&Queued) -> u64| {
            let name = format!("{} contenders, {what}", step.contenders);
            let points = step
                .queue
                .iter()
                .map(|at| (at.at_ms as f64 / 1e3, of(at) as f64));
            series.push(Series::new(name, colour, stroke, points));
        };
        add("waiting", Stroke::Plain, |at| at.waiting);
        if step.queue.iter().any(|at| at.backlog > 0) {
            add("backlog", Stroke::Dashed, |at| at.backlog);
        }
    }
    series.retain(|series| !series.points.is_empty());
    let since = "time since the step began (s)";
    let panel = Panel::over_time(named(case, steps), since, "arrivals", series);
    (!panel.series.is_empty()).then_some(panel)
}
