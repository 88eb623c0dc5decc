//! Scenarios that are read, and scenarios that are refused; each file tests one idea.

/// Makes a table with one row a line: `input, more input => outcome;`.
macro_rules! rows {
    ($($first:expr $(, $more:expr)* => $last:expr;)*) => {
        [$(($first, $($more,)* $last)),*]
    };
}

mod cases;
mod expectations;
mod faults;
mod links;
mod loads;
mod lock_keys;
mod names;
mod pauses;
mod plan_words;
mod reading;
mod services;
mod steps;
mod timeline;
mod times;
mod toxics;
mod triggers;

use super::*;
use crate::builtin::Location;
use crate::model::{Link, LinkFault};
use crate::services::Backend;
use std::collections::BTreeMap;

const GOOD: &str = "\
name: good
about: A hypothesis.
topology: redis
lock: { backend: redis, ttl: 2s }
workers:
  a: { key: k, gate: before_write }
  b: { key: k, start: a.paused }
timeline:
  - { when: a.at_gate, do: { pause: a, longer_than: ttl } }
  - { when: b.write_accepted, do: { resume: a } }
cases:
  unfenced: { fence: off, expect: { violations: 1.. } }
";

fn parse(text: &str) -> Result<Scenario, InvalidFile> {
    parse_as("good.yml", text)
}

fn parse_as(file: &str, text: &str) -> Result<Scenario, InvalidFile> {
    Scenario::parse(Path::new(file), text, &Settings::default(), &around())
}

fn parse_with(text: &str, settings: &[&str]) -> Result<Scenario, InvalidFile> {
    let settings = settings.iter().map(|text| text.parse().unwrap());
    let settings = Settings(settings.collect());
    Scenario::parse(Path::new("good.yml"), text, &settings, &around())
}

fn around() -> Surroundings {
    let all = [("redis", redis()), ("redlock", redlock()), ("etcd", etcd())];
    let all = all.map(|(name, facts)| (name.to_owned(), facts));
    Surroundings::Here {
        topologies: BTreeMap::from(all),
        home: vec![Location::from(".")],
    }
}

/// Returns the setup of the first case.
fn the_setup(mut scenario: Scenario) -> Setup {
    scenario.cases.swap_remove(0).setup
}

/// One Redis with a replica.
fn redis() -> TopologyFacts {
    TopologyFacts {
        services: names(&["redis", "redis-replica", "resource"]),
        templates: names(&["worker"]),
        workers: vec![worker(Backend::Redis, &["redis", "resource"])],
        links: vec![Link::new("redis-replica", "redis")],
        replicas: BTreeMap::from([("redis-replica".to_owned(), "redis".to_owned())]),
        resource: "resource".to_owned(),
        resource_kind: ResourceKind::Http,
        attached: BTreeMap::new(),
    }
}

/// Three servers that do not know each other, and a bystander.
fn redlock() -> TopologyFacts {
    let servers = ["redis-1", "redis-2", "redis-3", "resource"];
    TopologyFacts {
        services: names(&["redis-1", "redis-2", "redis-3", "resource", "bystander"]),
        templates: names(&["worker"]),
        workers: vec![worker(Backend::Redlock, &servers)],
        resource: "resource".to_owned(),
        ..TopologyFacts::default()
    }
}

/// Members that talk to each other.
fn etcd() -> TopologyFacts {
    TopologyFacts {
        services: names(&["etcd-1", "etcd-2", "resource"]),
        templates: names(&["worker"]),
        workers: vec![worker(Backend::Etcd, &["etcd-1", "etcd-2", "resource"])],
        links: [("etcd-1", "etcd-2"), ("etcd-2", "etcd-1")]
            .map(|(from, to)| Link::new(from, to))
            .into(),
        resource: "resource".to_owned(),
        ..TopologyFacts::default()
    }
}

fn worker(backend: Backend, reaches: &[&str]) -> WorkerFacts {
    WorkerFacts {
        backend: Some(backend),
        reaches: reaches.iter().map(|&name| name.into()).collect(),
    }
}

fn names(all: &[&str]) -> Vec<String> {
    all.iter().map(|name| (*name).to_owned()).collect()
}

/// Returns the complaints about a scenario; there is at least one.
#[track_caller]
fn said_about(file: &str, text: &str) -> Vec<String> {
    match parse_as(file, text) {
        Ok(_) => panic!("taken: {text}"),
        Err(error) => error.lines(),
    }
}

/// Returns the complaints about a good scenario with `from` replaced by `to`.
#[track_caller]
fn said_of(good: &str, from: &str, to: &str) -> Vec<String> {
    assert!(good.contains(from), "the scenario has no `{from}`");
    said_about("good.yml", &good.replace(from, to))
}

#[track_caller]
fn refused(from: &str, to: &str, expected: &str) {
    one_says(&said_of(GOOD, from, to), expected);
}

#[track_caller]
fn one_says(lines: &[String], expected: &str) {
    assert!(
        lines.iter().any(|line| line.contains(expected)),
        "expected `{expected}`, got {lines:#?}"
    );
}

/// Checks that there is one complaint, with these words in it.
#[track_caller]
fn only_says(lines: &[String], expected: &str) {
    let [only] = lines else {
        panic!("expected `{expected}` alone, got {lines:#?}");
    };
    assert!(only.contains(expected), "expected `{expected}`, got {only}");
}

/// Checks that each complaint, in the order of the file, contains its part.
#[track_caller]
fn all_say(text: &str, parts: &[&str]) {
    let lines = said_about("good.yml", text);
    assert_eq!(lines.len(), parts.len(), "{lines:#?}");
    for (line, part) in lines.iter().zip(parts) {
        assert!(line.contains(part), "`{part}` in {lines:#?}");
    }
}

#[track_caller]
fn has_all(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` in {text}");
    }
}

/// Returns a scenario with the workers a and b and this timeline.
fn with_timeline(topology: &str, timeline: &str) -> String {
    format!(
        "name: {topology}\nabout: A hypothesis.\ntopology: {topology}\n\
         lock: {{ backend: {topology}, ttl: 2s }}\n\
         workers:\n  a: {{ key: k, rounds: 9, gate: before_write }}\n  b: {{ key: k }}\n\
         cases:\n  fenced: {{ fence: on, expect: {{ violations: 0 }} }}\n\
         timeline:\n{timeline}\n"
    )
}

#[track_caller]
fn taken(topology: &str, timeline: &str) -> Setup {
    let text = with_timeline(topology, timeline);
    match parse_as(&format!("{topology}.yml"), &text) {
        Ok(scenario) => the_setup(scenario),
        Err(error) => panic!("`{timeline}`: {error}"),
    }
}

#[track_caller]
fn said(topology: &str, timeline: &str) -> Vec<String> {
    let text = with_timeline(topology, timeline);
    said_about(&format!("{topology}.yml"), &text)
}

/// Checks that the one complaint about a timeline is at the place of `at`.
#[track_caller]
fn refuses(topology: &str, timeline: &str, at: &str, expected: &str) {
    let lines = said(topology, timeline);
    let text = with_timeline(topology, timeline);
    let offset = text.rfind(timeline).expect("it is there") + timeline.find(at).expect("a place");
    let before = &text[..offset];
    let line = before.matches('\n').count() + 1;
    let column = before.len() - before.rfind('\n').map_or(0, |end| end + 1) + 1;
    let place = format!("{topology}.yml:{line}:{column}: ");
    only_says(&lines, expected);
    assert!(lines[0].starts_with(&place), "at {place}: {lines:#?}");
}

/// Returns a timeline of one step that is triggered by nothing.
fn alone(step: &str) -> String {
    format!("  - {{ after: 1s, do: {{ {step} }} }}")
}

#[track_caller]
fn refuses_step(topology: &str, step: &str, at: &str, expected: &str) {
    refuses(topology, &alone(step), at, expected);
}

/// Returns the one fault of a step that is about links.
#[track_caller]
fn link_fault(topology: &str, step: &str) -> LinkFault {
    let step = first_step(topology, step);
    match step.fault().map(Vec::as_slice) {
        Some([Fault::Links(fault)]) => fault.clone(),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn first_step(topology: &str, step: &str) -> PlannedStep {
    let setup = taken(topology, &alone(step));
    setup.timeline[0].steps[0].clone()
}
