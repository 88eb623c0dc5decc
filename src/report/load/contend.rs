//! Steps of contenders: how many, how long they waited, what bounds them, and what
//! making them cost.

use super::INDENT;
use super::words::{latency, warnings};
use crate::model::ContendStep;
use crate::report::grid::{Grid, wrapped};
use crate::report::units::{figure, percent};

pub fn table(steps: &[ContendStep], width: usize) -> String {
    let mut counts = Grid::new(&[
        "contenders",
        "model",
        "arrivals",
        "acquired",
        "timeouts",
        "turned away",
        "per s",
        "ceiling/s",
        "hand-offs/s",
    ]);
    let mut times = Grid::new(&[
        "contenders",
        "acquire p50",
        "p90",
        "p99",
        "p999",
        "max",
        "held p50",
        "hand-off p50",
        "retries",
        "commands",
    ]);
    let mut efforts = Grid::new(&[
        "contenders",
        "attempts",
        "attempts/s",
        "generator CPU",
        "lag p99",
    ]);
    for step in steps {
        counts.row(counted(step));
        times.row(timed(step));
        efforts.row(effort(step));
    }
    let mut text = [counts, times, efforts]
        .map(|grid| grid.text(INDENT, width))
        .concat();
    for (bound, contenders) in bounds(steps) {
        let line = format!("what bounds it at {}: {bound}", contenders.join(", "));
        text += &wrapped(&line, INDENT, width);
    }
    for step in steps {
        for warning in warnings(step) {
            let line = format!("! {} contenders: {warning}", step.contenders);
            text += &wrapped(&line, INDENT, width);
        }
    }
    text
}

fn counted(step: &ContendStep) -> Vec<String> {
    let model = match step.offered_per_s {
        Some(offered) => format!("{} {}/s", step.model, figure(offered)),
        None => step.model.clone(),
    };
    vec![
        step.contenders.to_string(),
        model,
        step.arrivals.to_string(),
        step.acquisitions.to_string(),
        step.timeouts.to_string(),
        step.turned_away.to_string(),
        figure(step.throughput_per_s),
        step.ceiling_per_s.map_or("-".to_owned(), figure),
        figure(step.hand_offs_per_s),
    ]
}

fn timed(step: &ContendStep) -> Vec<String> {
    let acquire = &step.acquire;
    // Of nothing acquired there is no cost of each.
    let each = |value: f64| match step.acquisitions {
        0 => "-".to_owned(),
        _ => figure(value),
    };
    vec![
        step.contenders.to_string(),
        latency(acquire, acquire.p50_us),
        latency(acquire, acquire.p90_us),
        latency(acquire, acquire.p99_us),
        latency(acquire, acquire.p999_us),
        latency(acquire, acquire.max_us),
        latency(&step.held, step.held.p50_us),
        latency(&step.hand_off, step.hand_off.p50_us),
        each(step.retries_per_acquisition()),
        each(step.commands_per_acquisition()),
    ]
}

/// What was sent, and what it cost here: of one core, and how late arrivals were made.
fn effort(step: &ContendStep) -> Vec<String> {
    let lag = &step.generator.lag;
    vec![
        step.contenders.to_string(),
        step.attempts.to_string(),
        match step.lasted_ms {
            0 => "-".to_owned(),
            ms => figure(step.attempts as f64 * 1e3 / ms as f64),
        },
        percent(step.generator.cpu_share),
        latency(lag, lag.p99_us),
    ]
}

/// What bounds the steps, each once, with the steps that it bounds.
fn bounds(steps: &[ContendStep]) -> Vec<(&str, Vec<String>)> {
    let mut bounds: Vec<(&str, Vec<String>)> = Vec::new();
    for step in steps.iter().filter(|step| !step.bound_by.is_empty()) {
        let contenders = step.contenders.to_string();
        match bounds.iter_mut().find(|(bound, _)| *bound == step.bound_by) {
            Some((_, of)) => of.push(contenders),
            None => bounds.push((&step.bound_by, vec![contenders])),
        }
    }
    bounds
}
