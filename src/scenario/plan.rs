use super::{Action, Scenario, Worker};
use crate::model::format_duration;
use std::fmt::Write;

/// What a run would do, step by step, for a person to read.
pub fn plan(scenario: &Scenario, services: &[String]) -> String {
    let mut steps = vec![
        format!("start {} on a private network", services.join(", ")),
        "start the workers; each reports `ready` and waits at its start gate".to_owned(),
    ];
    steps.extend(scenario.workers.iter().map(worker_step));
    steps.extend(scenario.timeline.iter().map(|entry| {
        let after = match entry.after.is_zero() {
            true => String::new(),
            false => format!(", {} later", format_duration(entry.after)),
        };
        format!("when {}{after}: {}", entry.when, action_step(&entry.action))
    }));
    steps.push("wait until every worker is done".to_owned());
    steps.push("heal, collect the resource's log, judge, report, remove everything".to_owned());

    let mut text = format!("{}\n{}\n\n", scenario.name, scenario.about);
    for (number, step) in steps.iter().enumerate() {
        let _ = writeln!(text, "{:>3}. {step}", number + 1);
    }
    let _ = writeln!(
        text,
        "\nCases, each on a fresh cluster, each given up after {}:",
        format_duration(scenario.deadline)
    );
    for case in &scenario.cases {
        let expected = expectation_words(case);
        let _ = writeln!(
            text,
            "  {}: fence {}; expects {expected}",
            case.name, case.fence
        );
    }
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
    if worker.rounds > 1 {
        let _ = write!(text, ", {} times", worker.rounds);
    }
    if !worker.gates.is_empty() {
        let gates: Vec<&str> = worker.gates.iter().map(|gate| gate.name()).collect();
        let _ = write!(text, "; stops at its gate {}", gates.join(", "));
    }
    text
}

fn action_step(action: &Action) -> String {
    match action {
        Action::Pause {
            target,
            lasting,
            longer_than,
        } => {
            let mut text = format!("SIGSTOP {target}, proven when every thread is in state T");
            if let Some(lasting) = lasting {
                let _ = write!(text, ", SIGCONT after {}", format_duration(*lasting));
            }
            if let Some(bound) = longer_than {
                let _ = write!(
                    text,
                    "; it counts only if it lasts longer than {}",
                    format_duration(*bound)
                );
            }
            text
        }
        Action::Resume { target } => format!("SIGCONT {target}"),
    }
}

fn expectation_words(case: &super::Case) -> String {
    let expect = &case.expect;
    let by_kind = expect.violations_by_kind.iter();
    let named = [
        ("violations", expect.violations),
        ("accepted writers", expect.accepted_writers),
        ("accepted writes", expect.accepted_writes),
        ("stale rejections", expect.stale_rejections),
        ("rightful rejections", expect.rightful_rejections),
        ("overlapping holds", expect.overlaps),
    ];
    let mut words: Vec<String> = by_kind.map(|(kind, n)| format!("{kind} {n}")).collect();
    words.extend(
        named
            .into_iter()
            .filter_map(|(name, range)| Some(format!("{name} {}", range?))),
    );
    words.join(", ")
}
