//! Steps of contenders: how many there were, how long they waited, what limits them, and the
//! cost of generating the load.

use super::words::{each, latency, warnings};
use super::*;

const COUNTS: [Column<ContendStep>; 9] = [
    ("contenders", |step| step.contenders.to_string()),
    ("model", |step| match step.offered_per_s {
        Some(offered) => format!("{} {}/s", step.model, figure(offered)),
        None => step.model.clone(),
    }),
    ("arrivals", |step| step.arrivals.to_string()),
    ("acquired", |step| step.acquisitions.to_string()),
    ("timeouts", |step| step.timeouts.to_string()),
    ("turned away", |step| step.turned_away.to_string()),
    ("per s", |step| figure(step.throughput_per_s)),
    ("ceiling/s", |step| {
        step.ceiling_per_s.map_or("-".to_owned(), figure)
    }),
    ("hand-offs/s", |step| figure(step.hand_offs_per_s)),
];

const TIMES: [Column<ContendStep>; 10] = [
    ("contenders", |step| step.contenders.to_string()),
    ("acquire p50", |step| {
        latency(&step.acquire, step.acquire.p50_us)
    }),
    ("p90", |step| latency(&step.acquire, step.acquire.p90_us)),
    ("p99", |step| latency(&step.acquire, step.acquire.p99_us)),
    ("p999", |step| latency(&step.acquire, step.acquire.p999_us)),
    ("max", |step| latency(&step.acquire, step.acquire.max_us)),
    ("held p50", |step| latency(&step.held, step.held.p50_us)),
    ("hand-off p50", |step| {
        latency(&step.hand_off, step.hand_off.p50_us)
    }),
    ("retries", |step| {
        counted(step, figure(step.retries_per_acquisition()))
    }),
    ("commands", |step| {
        counted(step, figure(step.commands_per_acquisition()))
    }),
];

/// What was sent, and what it cost here: the share of one core, and how late arrivals were made.
const EFFORTS: [Column<ContendStep>; 5] = [
    ("contenders", |step| step.contenders.to_string()),
    ("attempts", |step| step.attempts.to_string()),
    ("attempts/s", |step| match step.lasted_ms {
        0 => "-".to_owned(),
        ms => figure(step.attempts as f64 * 1e3 / ms as f64),
    }),
    ("generator CPU", |step| percent(step.generator.cpu_share)),
    ("lag p99", |step| {
        latency(&step.generator.lag, step.generator.lag.p99_us)
    }),
];

pub fn table(steps: &[ContendStep], width: usize) -> String {
    let mut grids = vec![&COUNTS[..], &TIMES];
    if steps.iter().any(counts_attempts) {
        grids.push(&EFFORTS);
    }
    let grids = grids.into_iter();
    let mut text: String = grids
        .map(|columns| Grid::of(columns, steps).text(INDENT, width))
        .collect();
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

/// Returns whether the contenders were our own: of workers nobody knows what they send.
fn counts_attempts(step: &ContendStep) -> bool {
    step.attempts > 0
}

fn counted(step: &ContendStep, words: String) -> String {
    match counts_attempts(step) {
        true => each(step, words),
        false => "-".to_owned(),
    }
}

/// Returns each limiting factor once, with the steps that it limits.
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
