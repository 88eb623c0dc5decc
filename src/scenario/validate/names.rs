//! Checks that names are valid, belong to one thing each, and exist.

use super::*;
use crate::model::LinkPattern;
use crate::scenario::draft::SERVERS;
use crate::scenario::values::is_plain_name;
use std::collections::{BTreeMap, BTreeSet};

/// The name of the scenario's file in a folder of results, without `.yml`.
const KEPT: &str = "scenario";

const RESERVED: [&str; 4] = [LEADER, LinkPattern::ANY, SCENARIO, SERVERS];

pub fn of_scenario(draft: &Draft, file: &Path, surroundings: &Surroundings, report: &mut Report) {
    let before = report.complaints();
    plain(draft.name.iter().chain(&draft.services), report);
    if report.complaints() == before {
        plain(draft.cases.iter().map(|case| &case.name), report);
    }
    unique_cases(draft, report);
    if let Surroundings::Here { .. } = surroundings {
        file_name(draft, file, report);
    }
}

/// Checks that no two cases are called the same, as `a-b` with `c` and `a` with `b-c` are.
fn unique_cases(draft: &Draft, report: &mut Report) {
    let mut names = BTreeSet::new();
    for case in &draft.cases {
        if !names.insert(&case.name.value) {
            let name = &case.name.value;
            let message =
                format!("another service and case are called `{name}` together; rename one");
            report.add(case.name.place, message);
        }
    }
}

pub fn check(check: &Check<'_>, surroundings: &Surroundings, report: &mut Report) {
    let draft = check.draft;
    let workers = draft.workers.iter().map(|worker| &worker.name);
    let entries = draft.timeline.iter().filter_map(|e| e.name.as_ref());
    plain(workers.clone().chain(entries), report);
    for name in workers {
        let word = name.value.as_str();
        if RESERVED.contains(&word) || word == RESOURCE {
            let message =
                format!("`{word}` means something else in a timeline; call the worker otherwise");
            report.add(name.place, message);
        }
    }
    unique_workers(check, report);
    entry_names(check, report);
    if let Surroundings::Here { topologies, .. } = surroundings {
        topology(check, topologies, report);
    }
}

fn plain<'a>(names: impl Iterator<Item = &'a At<String>>, report: &mut Report) {
    for name in names.filter(|name| !is_plain_name(&name.value)) {
        let message = format!(
            "`{}` is not a name; use 1 to 40 lower-case letters, digits and dashes, a letter first",
            name.value
        );
        report.add(name.place, message);
    }
}

/// Checks that workers have different names: a copy may get the name of another worker.
fn unique_workers(check: &Check<'_>, report: &mut Report) {
    let workers = &check.draft.workers;
    for (number, worker) in workers.iter().enumerate() {
        let name = &worker.name;
        let is_taken = |other: &DraftWorker| other.name.value == name.value;
        if workers[..number].iter().any(is_taken) {
            let message = format!("another worker is called `{}` already", name.value);
            report.add(name.place, message);
        }
    }
}

/// Checks the names of entries: triggers and `heal` must refer to one thing only.
fn entry_names(check: &Check<'_>, report: &mut Report) {
    let mut before: Vec<&At<String>> = Vec::new();
    let entries = &check.draft.timeline;
    for name in entries.iter().filter_map(|entry| entry.name.as_ref()) {
        let word = name.value.as_str();
        let services = check.facts.map_or(&[][..], |facts| &facts.services);
        let wrong = if let Some(first) = before.iter().find(|known| known.value == word) {
            let line = first.place.line;
            format!("another entry is called `{word}` (line {line}); names are unique")
        } else if check.worker(word).is_some() {
            format!("`{word}` is a worker; call the entry something else")
        } else if services.iter().any(|service| service == word) {
            format!("`{word}` is a service of the topology; call the entry something else")
        } else if RESERVED.contains(&word) || word == RESOURCE {
            format!("`{word}` means something else; call the entry otherwise")
        } else {
            String::new()
        };
        if !wrong.is_empty() {
            report.add(name.place, wrong);
        }
        before.push(name);
    }
}

fn file_name(draft: &Draft, file: &Path, report: &mut Report) {
    let Some(name) = &draft.name else {
        return;
    };
    let stem = file.file_stem().and_then(|stem| stem.to_str());
    // Every run keeps its scenario under this one name, and that file can be run again.
    if stem.is_some_and(|stem| stem != name.value && stem != KEPT) {
        let message = format!(
            "the scenario is called `{}` and its file `{}`; give both one name",
            name.value,
            file.display()
        );
        report.add(name.place, message);
    }
}

fn topology(check: &Check<'_>, all: &BTreeMap<String, TopologyFacts>, report: &mut Report) {
    let Some(topology) = &check.draft.topology else {
        return;
    };
    let Some(facts) = check.facts else {
        let known = all.keys().map(String::as_str);
        report.unknown(topology.place, "topology", &topology.value, known);
        return;
    };
    lock::check_servers(check.draft, &topology.value, facts, report);
    let services = || facts.services.iter().chain(&facts.templates);
    for service in services().filter(|name| RESERVED.contains(&name.as_str())) {
        let message = format!(
            "the topology `{}` has a service `{service}`, which means something else in a timeline; call it otherwise there",
            topology.value
        );
        report.add(topology.place, message);
    }
    for worker in &check.draft.workers {
        let name = worker.copy_of.as_ref().unwrap_or(&worker.name.value);
        if services().any(|service| service == name) && name != RESOURCE {
            let message =
                format!("`{name}` is a service of the topology; call the worker something else");
            report.add(worker.name.place, message);
        }
    }
}
