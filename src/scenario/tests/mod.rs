//! Scenarios that are read, and scenarios that are refused, one idea a file.

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
mod steps;
mod timeline;
mod times;
mod toxics;
mod triggers;

use super::*;
use crate::model::{Backend, Link};
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

fn around() -> Surroundings {
    let all = [("redis", redis()), ("redlock", redlock()), ("etcd", etcd())];
    let all = all.map(|(name, facts)| (name.to_owned(), facts));
    Surroundings::Here {
        topologies: BTreeMap::from(all),
        folder: ".".into(),
    }
}

/// Of its first case.
fn the_setup(mut scenario: Scenario) -> Setup {
    scenario.cases.swap_remove(0).setup
}

/// One Redis with a replica.
fn redis() -> TopologyFacts {
    TopologyFacts {
        services: names(&["redis", "redis-replica", "resource"]),
        templates: names(&["worker"]),
        workers: vec![worker(Backend::Redis, &["redis", "resource"])],
        links: vec![link("redis-replica", "redis")],
        replicas: BTreeMap::from([("redis-replica".to_owned(), "redis".to_owned())]),
        resource: "resource".to_owned(),
    }
}

/// Three servers that do not know each other, and a bystander.
fn redlock() -> TopologyFacts {
    TopologyFacts {
        services: names(&["redis-1", "redis-2", "redis-3", "resource", "bystander"]),
        templates: names(&["worker"]),
        workers: vec![worker(
            Backend::Redlock,
            &["redis-1", "redis-2", "redis-3", "resource"],
        )],
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
        links: vec![link("etcd-1", "etcd-2"), link("etcd-2", "etcd-1")],
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

fn link(from: &str, to: &str) -> Link {
    Link {
        from: from.into(),
        to: to.into(),
    }
}

/// The complaints about the good scenario with `from` replaced by `to`.
fn complaints(from: &str, to: &str) -> Vec<String> {
    assert!(GOOD.contains(from), "the scenario has no `{from}`");
    match parse(&GOOD.replace(from, to)) {
        Ok(_) => Vec::new(),
        Err(error) => error.lines(),
    }
}

#[track_caller]
fn refused(from: &str, to: &str, expected: &str) {
    let lines = complaints(from, to);
    assert!(
        lines.iter().any(|line| line.contains(expected)),
        "`{to}`: expected `{expected}`, got {lines:#?}"
    );
}

/// A scenario with the workers a and b and this timeline.
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

/// What is said about a timeline; at least one thing is.
#[track_caller]
fn said(topology: &str, timeline: &str) -> Vec<String> {
    let text = with_timeline(topology, timeline);
    match parse_as(&format!("{topology}.yml"), &text) {
        Ok(_) => panic!("taken: {timeline}"),
        Err(error) => error.lines(),
    }
}

/// The one thing that is said about a timeline, at the place where `at`
/// stands in it.
#[track_caller]
fn refuses(topology: &str, timeline: &str, at: &str, expected: &str) {
    let lines = said(topology, timeline);
    let text = with_timeline(topology, timeline);
    let offset = text.rfind(timeline).expect("it is there") + timeline.find(at).expect("a place");
    let before = &text[..offset];
    let line = before.matches('\n').count() + 1;
    let column = before.len() - before.rfind('\n').map_or(0, |end| end + 1) + 1;
    let place = format!("{topology}.yml:{line}:{column}: ");
    let [only] = lines.as_slice() else {
        panic!("`{timeline}`: {lines:#?}");
    };
    let message = only.strip_prefix(&place);
    let message = message.unwrap_or_else(|| panic!("expected at {place}, got {only}"));
    assert!(
        message.contains(expected),
        "expected `{expected}`, got `{message}`"
    );
}

/// As [`refuses`], for one step that hangs on nothing.
#[track_caller]
fn refuses_step(topology: &str, step: &str, at: &str, expected: &str) {
    refuses(
        topology,
        &format!("  - {{ after: 1s, do: {{ {step} }} }}"),
        at,
        expected,
    );
}

/// The first step of the first entry.
#[track_caller]
fn first_step(topology: &str, step: &str) -> Step {
    let setup = taken(topology, &format!("  - {{ after: 1s, do: {{ {step} }} }}"));
    setup.timeline[0].steps[0].clone()
}
