pub mod expectation_words;
mod fault_words;
pub mod load_words;

use super::{Case, Entry, Repeat, Scenario, Setup, Span, Step, Trigger, Worker};
use crate::model::format_duration;
use std::fmt::Write;

/// What a run would do, step by step, for a person to read. `services` are
/// those that a topology starts, by its name.
pub fn plan(scenario: &Scenario, services: impl Fn(&str) -> Vec<String>) -> String {
    let mut text = format!("{}\n{}\n", scenario.name, scenario.about);
    // Cases that do the same are told together.
    let mut groups: Vec<(String, Vec<&Case>)> = Vec::new();
    for case in &scenario.cases {
        let steps = steps(&case.setup, &services(&case.setup.topology));
        match groups.iter_mut().find(|(known, _)| *known == steps) {
            Some((_, cases)) => cases.push(case),
            None => groups.push((steps, vec![case])),
        }
    }
    for (steps, cases) in &groups {
        if groups.len() > 1 {
            let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
            let _ = write!(text, "\n{}:", names.join(", "));
        }
        let _ = write!(text, "\n{steps}");
        for case in cases {
            let expected = expectation_words::of(&case.expect);
            let fence = match case.setup.writes() {
                true => format!("fence {}; ", case.fence),
                false => String::new(),
            };
            let _ = writeln!(text, "  {}: {fence}expects {expected}", case.name);
        }
    }
    text
}

fn steps(setup: &Setup, services: &[String]) -> String {
    let mut steps = vec![format!(
        "start {} on a private network",
        services.join(", ")
    )];
    match &setup.load {
        Some(load) => steps.extend(load_words::steps(setup, load)),
        None => {
            let image = setup.worker_image.as_ref();
            let from = image.map_or_else(String::new, |image| format!(" from {image}"));
            steps.push(format!(
                "start the workers{from}; each reports `ready` and waits at its start gate"
            ));
            steps.extend(setup.workers.iter().map(worker_step));
            steps.extend(setup.timeline.iter().map(entry_step));
            steps.push("wait until every worker is done".to_owned());
        }
    }
    steps.push("heal, collect the resource's log, judge, report, remove everything".to_owned());

    let mut text = String::new();
    for (number, step) in steps.iter().enumerate() {
        let _ = writeln!(text, "{:>3}. {step}", number + 1);
    }
    if setup.timeline.iter().any(is_drawn) {
        text.push_str("\nThe seed draws what has bounds or choices: one seed, one timeline.\n");
    }
    for need in setup.needs() {
        let _ = write!(text, "\nNeeds {need}; without it a case is inconclusive.\n");
    }
    let _ = writeln!(
        text,
        "\nCases, each on a fresh cluster, each given up after {}:",
        format_duration(setup.deadline)
    );
    text
}

fn worker_step(worker: &Worker) -> String {
    let start = match &worker.start {
        Some(trigger) => format!("when {trigger}"),
        None => "at once".to_owned(),
    };
    let mut text = format!(
        "{start}: {} acquires `{}`, writes, releases",
        worker.name, worker.key
    );
    match worker.rounds {
        Some(1) => {}
        Some(rounds) => {
            let _ = write!(text, ", {rounds} times");
        }
        None => text.push_str(", again and again"),
    }
    if !worker.gates.is_empty() {
        let gates: Vec<&str> = worker.gates.iter().map(|gate| gate.name()).collect();
        let _ = write!(text, "; stops at its gate {}", gates.join(", "));
    }
    text
}

/// One line for an entry with one step; else a line for each below its own.
fn entry_step(entry: &Entry) -> String {
    let mut text = match entry.when == Trigger::at_the_start() {
        true => "from the start".to_owned(),
        false => format!("when {}", entry.when),
    };
    if entry.after != Span::default() {
        let _ = write!(text, ", {} later", entry.after);
    }
    match entry.repeat {
        Repeat::Times(1) => {}
        Repeat::Times(times) => {
            let _ = write!(text, ", {times} times over");
        }
        Repeat::Throughout => text.push_str(", again and again"),
    }
    if let Some(name) = &entry.name {
        let _ = write!(text, " (`{name}`)");
    }
    match entry.steps.as_slice() {
        [step] if !matches!(step, Step::Together { .. }) => {
            let _ = write!(text, ": {}", step_words(step));
        }
        steps => {
            text.push(':');
            below(&mut text, steps, 1);
        }
    }
    text
}

fn below(text: &mut String, steps: &[Step], depth: usize) {
    for step in steps {
        let indent = "  ".repeat(depth);
        let _ = write!(text, "\n   {indent}- {}", step_words(step));
        if let Step::Together { steps } = step {
            below(text, steps, depth + 1);
        }
    }
}

fn step_words(step: &Step) -> String {
    match step {
        Step::Inject { choices, lasting } => fault_words::inject(choices, *lasting),
        Step::Resume { node } => format!("SIGCONT {node}"),
        Step::Thaw { node } => format!("thaw {node}"),
        Step::Heal { entry } => format!("undo everything of `{entry}` that still stands"),
        Step::Wait { span } => format!("wait {span}"),
        Step::Await { event } => format!("wait for {event}"),
        Step::Together { .. } => "at the same time:".to_owned(),
    }
}

/// Whether the seed decides anything.
fn is_drawn(entry: &Entry) -> bool {
    let has_bounds = |span: Span| span.from != span.to;
    fn of(step: &Step, has_bounds: &dyn Fn(Span) -> bool) -> bool {
        match step {
            Step::Inject { choices, lasting } => {
                choices.len() > 1 || lasting.is_some_and(has_bounds)
            }
            Step::Wait { span } => has_bounds(*span),
            Step::Together { steps } => steps.iter().any(|step| of(step, has_bounds)),
            Step::Await { .. } | Step::Resume { .. } | Step::Thaw { .. } | Step::Heal { .. } => {
                false
            }
        }
    }
    has_bounds(entry.after) || entry.steps.iter().any(|step| of(step, &has_bounds))
}
