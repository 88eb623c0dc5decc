//! One pass over a draft that collects everything that cannot work, before
//! anything is started.

use super::draft::{Draft, DraftWorker};
use super::values::is_plain_name;
use super::{Scenario, Trigger, build, lock, pauses};
use crate::model::{Backend, EventKind, format_duration};
use crate::yaml::{At, Report};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(60);
const LONGEST_DEADLINE: Duration = Duration::from_secs(60 * 60);
const LONGEST_TTL: Duration = Duration::from_secs(24 * 60 * 60);
const MOST_ROUNDS: u32 = 100_000;
/// Each is a container of its own.
const MOST_WORKERS: usize = 64;

/// What the resource itself reports, and what a fault reports about its target.
const RESOURCE: &str = "resource";
const RESOURCE_EVENTS: [&str; 2] = ["write_accepted", "write_rejected"];
const FAULT_EVENTS: [&str; 2] = ["paused", "resumed"];

/// What a scenario may refer to outside of its own file.
#[derive(Clone, Debug)]
pub enum Surroundings {
    /// The topologies there are, by name.
    Topologies(BTreeMap<String, TopologyFacts>),
    /// A recorded run: its scenario was valid where it ran, and the topologies
    /// of then are not here to be asked.
    Recorded,
}

/// What a scenario has to know about a topology.
#[derive(Clone, Debug)]
pub struct TopologyFacts {
    pub services: Vec<String>,
    /// What its worker speaks to the lock servers by default; None where that
    /// is a language of its own.
    pub backend: Option<Backend>,
}

pub fn validate(
    draft: Draft,
    file: &Path,
    text: &str,
    surroundings: &Surroundings,
    report: &mut Report,
) -> Option<Scenario> {
    let check = Check {
        draft: &draft,
        deadline: draft
            .deadline
            .as_ref()
            .map_or(DEFAULT_DEADLINE, |d| d.value),
    };
    if let Some(worker) = draft.workers.get(MOST_WORKERS) {
        let message = format!("a scenario has at most {MOST_WORKERS} workers");
        report.add(worker.name.place, message);
        return None;
    }
    check.names(file, surroundings, report);
    check.times(report);
    lock::check(&draft, report);
    for worker in &draft.workers {
        check.worker(worker, report);
    }
    check.starts_are_reachable(report);
    for entry in &draft.timeline {
        if let Some(when) = &entry.when {
            check.trigger(when, report);
        }
        pauses::check(&check, entry, report);
    }
    build::scenario(draft, text)
}

pub struct Check<'a> {
    pub draft: &'a Draft,
    deadline: Duration,
}

impl Check<'_> {
    fn names(&self, file: &Path, surroundings: &Surroundings, report: &mut Report) {
        let scenario = self.draft.name.iter();
        let workers = self.draft.workers.iter().map(|worker| &worker.name);
        let cases = self.draft.cases.iter().map(|case| &case.name);
        for name in scenario.chain(workers).chain(cases) {
            if !is_plain_name(&name.value) {
                let message = format!(
                    "`{}` is not a name; use 1 to 40 lower-case letters, digits and dashes, a letter first",
                    name.value
                );
                report.add(name.place, message);
            }
        }
        if let Surroundings::Topologies(topologies) = surroundings {
            self.file_name(file, report);
            self.topology(topologies, report);
        }
    }

    fn file_name(&self, file: &Path, report: &mut Report) {
        let Some(name) = &self.draft.name else { return };
        let stem = file.file_stem().and_then(|stem| stem.to_str());
        if stem.is_some_and(|stem| stem != name.value) {
            let message = format!(
                "the scenario is called `{}` and its file `{}`; give both one name",
                name.value,
                file.display()
            );
            report.add(name.place, message);
        }
    }

    fn topology(&self, topologies: &BTreeMap<String, TopologyFacts>, report: &mut Report) {
        let Some(topology) = &self.draft.topology else {
            return;
        };
        let Some(facts) = topologies.get(&topology.value) else {
            let known = topologies.keys().map(String::as_str);
            report.unknown(topology.place, "topology", &topology.value, known);
            return;
        };
        lock::check_servers(self.draft, &topology.value, facts, report);
        for worker in &self.draft.workers {
            if facts.services.contains(&worker.name.value) {
                let message = format!(
                    "`{}` is a service of the topology; call the worker something else",
                    worker.name.value
                );
                report.add(worker.name.place, message);
            }
        }
    }

    fn times(&self, report: &mut Report) {
        if let Some(ttl) = self.draft.ttl() {
            if ttl.value.is_zero() || ttl.value > LONGEST_TTL {
                report.add(ttl.place, "a TTL is longer than 0ms and at most a day");
            } else if ttl.value >= self.deadline {
                let message = format!(
                    "a TTL of {} never runs out before the deadline of {}; set `deadline` higher",
                    format_duration(ttl.value),
                    format_duration(self.deadline)
                );
                report.add(ttl.place, message);
            }
        }
        if let Some(deadline) = &self.draft.deadline
            && (deadline.value.is_zero() || deadline.value > LONGEST_DEADLINE)
        {
            report.add(
                deadline.place,
                "a deadline is longer than 0ms and at most an hour",
            );
        }
    }

    fn worker(&self, worker: &DraftWorker, report: &mut Report) {
        if let Some(key) = &worker.key {
            let readable = !key.value.chars().any(char::is_control);
            // HTTP clients fold `.` and `..` away.
            let folded = key.value == "." || key.value == "..";
            if key.value.is_empty() || key.value.len() > 256 || !readable || folded {
                report.add(
                    key.place,
                    "a key is 1 to 256 bytes without control characters, and neither `.` nor `..`",
                );
            }
        }
        if let Some(rounds) = &worker.rounds
            && !(1..=MOST_ROUNDS).contains(&rounds.value)
        {
            report.add(rounds.place, format!("rounds are 1 to {MOST_ROUNDS}"));
        }
        for wait in [&worker.work, &worker.pause].into_iter().flatten() {
            self.fits_the_deadline(wait, report);
        }
        if let Some(start) = &worker.start {
            self.trigger(start, report);
        }
    }

    pub fn fits_the_deadline(&self, wait: &At<Duration>, report: &mut Report) {
        if wait.value >= self.deadline {
            let message = format!(
                "{} does not fit into the deadline of {}; set `deadline` higher",
                format_duration(wait.value),
                format_duration(self.deadline)
            );
            report.add(wait.place, message);
        }
    }

    pub fn find(&self, name: &str) -> Option<&DraftWorker> {
        self.draft.workers.iter().find(|w| w.name.value == name)
    }

    /// An event that exists, on somebody who exists, as often as it can come.
    fn trigger(&self, at: &At<Trigger>, report: &mut Report) {
        let Trigger { source, event, .. } = &at.value;
        if source == RESOURCE {
            if !RESOURCE_EVENTS.contains(&event.as_str()) {
                report.unknown(at.place, "event of the resource", event, RESOURCE_EVENTS);
            }
            return;
        }
        let Some(worker) = self.find(source) else {
            let workers = self.draft.workers.iter().map(|w| w.name.value.as_str());
            report.unknown(at.place, "worker", source, workers.chain([RESOURCE]));
            return;
        };
        let known = EventKind::NAMES.into_iter().chain(FAULT_EVENTS);
        if !known.clone().any(|name| name == event) {
            report.unknown(at.place, "event of a worker", event, known);
            return;
        }
        if let Some(reason) = self.never_comes(worker, &at.value) {
            report.add(at.place, format!("`{}` never comes: {reason}", at.value));
        }
    }

    fn never_comes(&self, worker: &DraftWorker, trigger: &Trigger) -> Option<String> {
        let name = &worker.name.value;
        let rounds = worker.rounds.as_ref().map_or(1, |rounds| rounds.value);
        let most = match trigger.event.as_str() {
            "ready" | "done" => 1,
            "at_gate" if worker.gates.is_none() => {
                return Some(format!(
                    "worker `{name}` has no gate; give it one, such as `gate: before_write`"
                ));
            }
            "at_gate" => {
                let gates = worker.gates.as_ref().map_or(0, Vec::len).max(1);
                rounds.saturating_mul(gates as u32)
            }
            "acquired" | "acquiring" | "writing" | "write_accepted" | "write_rejected" => rounds,
            "paused" | "resumed" if !self.draft.timeline.iter().any(|e| e.pauses(name)) => {
                return Some(format!("nothing pauses `{name}`"));
            }
            _ => return None,
        };
        (trigger.occurrence > most)
            .then(|| format!("with {rounds} round(s) it comes at most {most} time(s)"))
    }

    /// Workers that wait for each other to start would wait for ever.
    fn starts_are_reachable(&self, report: &mut Report) {
        let mut started: Vec<&str> = Vec::new();
        // Each pass starts at least one more, or is the last.
        for _ in &self.draft.workers {
            let before = started.len();
            for worker in &self.draft.workers {
                let name = worker.name.value.as_str();
                let free = match &worker.start {
                    None => true,
                    Some(start) if start.value.event == "ready" => true,
                    // Somebody has to write before the resource can say anything.
                    Some(start) if start.value.source == RESOURCE => !started.is_empty(),
                    Some(start) => started.contains(&start.value.source.as_str()),
                };
                if free && !started.contains(&name) {
                    started.push(name);
                }
            }
            if started.len() == before {
                break;
            }
        }
        for worker in &self.draft.workers {
            let known = worker.start.as_ref().filter(|start| {
                let source = &start.value.source;
                source == RESOURCE || self.find(source).is_some()
            });
            if let Some(start) = known
                && !started.contains(&worker.name.value.as_str())
            {
                let message = format!(
                    "worker `{}` never starts: `{}` waits for a start that waits for it",
                    worker.name.value, start.value
                );
                report.add(start.place, message);
            }
        }
    }
}
