use super::plan::{expectation_words, load_words};
use super::*;
use crate::model::format_duration;
use std::fmt::Write;

/// Renders docs/scenarios.md from the scenario files themselves.
pub fn page(scenarios: &[Scenario]) -> String {
    let mut text = String::from(
        "# The scenarios\n\n\
         Made from the files under `scenarios/` by `fencepost list --markdown`; a test compares the two, so\n\
         edit those and make this anew. What the words of a case count is said in\n\
         [scenarios/README.md](../scenarios/README.md#expectations), and what follows from them all in\n\
         [findings.md](findings.md).\n\n\
         | scenario | cases | faults or load |\n|---|---|---|\n",
    );
    for scenario in scenarios {
        let name = &scenario.name;
        let faults = once_each(scenario.cases.iter().flat_map(|case| faults(&case.setup)));
        let count = scenario.cases.len();
        let _ = writeln!(
            text,
            "| [{name}](#{name}) | {count} | {} |",
            or_none(&faults)
        );
    }
    for scenario in scenarios {
        section(&mut text, scenario);
    }
    text
}

fn section(text: &mut String, scenario: &Scenario) {
    let Scenario { name, about, .. } = scenario;
    let happens = if scenario.is_load() { "load" } else { "faults" };
    let _ = write!(
        text,
        "\n## {name}\n\n{about}\n\n    fencepost run {name}\n\n\
         | case | topology | lock | {happens} | fence | expects |\n|---|---|---|---|---|---|\n"
    );
    for case in &scenario.cases {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} |",
            case.name,
            topology(&case.setup),
            locks(case),
            or_none(&faults(&case.setup)),
            fence(case),
            expectation_words::of(&case.expect),
        );
    }
    let needs = once_each(scenario.cases.iter().flat_map(|case| case.setup.needs()));
    for need in needs {
        let _ = write!(
            text,
            "\nNeeds {need}; where that is missing, the case is inconclusive and says so.\n"
        );
    }
}

fn topology(setup: &Setup) -> String {
    match &setup.attach {
        None => setup.topology.clone(),
        Some(attach) => {
            let servers: Vec<&str> = attach.servers.keys().map(Name::as_str).collect();
            format!("attached: {}", servers.join(", "))
        }
    }
}

fn fence(case: &Case) -> String {
    if case.setup.writes() {
        case.fence.to_string()
    } else {
        or_none(&[])
    }
}

fn locks(case: &Case) -> String {
    if let Some(load) = &case.setup.load {
        return load_words::lock(&case.setup, load);
    }
    let workers = case.setup.workers.iter();
    let locks = workers.map(|worker| {
        let ttl = format_duration(worker.ttl);
        format!("{} {ttl}", worker.lock.backend)
    });
    once_each(locks).join(", ")
}

/// Returns the faults or the load of a case, in words.
fn faults(setup: &Setup) -> Vec<String> {
    if let Some(load) = &setup.load {
        return vec![load_words::short(load)];
    }
    let faults = setup.faults().into_iter();
    once_each(faults.map(|fault| fault.kind().to_string()))
}

fn or_none(words: &[String]) -> String {
    if words.is_empty() {
        "–".to_owned()
    } else {
        words.join(", ")
    }
}
