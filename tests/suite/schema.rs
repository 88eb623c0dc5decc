//! `schema`: what an editor accepts is what the program accepts, in form.

mod check;
mod results;

use crate::support::*;
use check::complaints;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

const FILE: &str = "scenarios/pause-gt-ttl.yml";

#[test]
fn every_shipped_scenario_fits_the_schema() {
    let schema = schema();
    let mut files = 0;
    for entry in fs::read_dir(project().join("scenarios")).expect("a folder") {
        let path = entry.expect("readable").path();
        if path.extension().is_some_and(|extension| extension == "yml") {
            let found = complaints(
                &schema,
                &scenario(&fs::read_to_string(&path).expect("text")),
            );
            assert_eq!(found, [""; 0], "{}", path.display());
            files += 1;
        }
    }
    assert!(files > 0);
}

#[test]
fn whatever_can_be_written_fits_the_schema() {
    // That the program takes it is tested beside it.
    let path = project().join("src/scenario/tests/every_action.yml");
    let text = fs::read_to_string(path).expect("text");
    assert_eq!(complaints(&schema(), &scenario(&text)), [""; 0]);
}

/// In the place of `do: { resume: a }`.
const BAD_STEPS: &[&str] = &[
    "do: {}",
    "do: { resume: a, for: 1s }",
    "do: []",
    "do: { resume: a, thaw: a }",
    "do: { wait: 2 }",
    "do: { wait: 1s.. }",
    "do: { together: [{ wait: 1s }] }",
    "do: { drop: a, percent: 5 }",
    "do: { loss: a, percent: 100 }",
    "do: { loss: a }",
    "do: { skew: a }",
    "do: { drift: a }",
    "do: { bandwidth: a -> redis }",
    "do: { skew: a, by: soon }",
    "do: { drift: a, ppm: 500001 }",
    "do: { drift: a, ppm: -500001 }",
    "do: { disconnect: { one_of: [a] } }",
    "do: { isolate: a, by: magic }",
    "do: { partition: [[a]] }",
    "do: { partition: [[a], []] }",
    "do: { refuse: a }",
    "do: { refuse: [] }",
    "do: { latency: a -> redis }",
    "do: { bandwidth: a -> redis, rate: 20 }",
    "do: { bandwidth: a -> redis, rate: 0KB/s }",
    "do: { toxic: a -> redis, type: noop }",
    "do: { toxic: a -> redis, type: slicer }",
    "do: { toxic: a -> redis, type: timeout, bytes: 1 }",
    "do: { toxic: a -> redis, type: timeout, timeout: -1 }",
    "do: { toxic: a -> redis, type: timeout, toxicity: 0 }",
    "do: { resume: a }, repeat: 0",
    "do: { resume: a }, repeat: 1001",
    "do: { resume: a }, name: Cut",
    "do: { resume: a }, after: 2s..x",
];

/// What stands in the file, and what is wrong in its place.
const BAD_FIELDS: [(&str, &str); 19] = [
    ("topology: redis", "topologie: redis"),
    ("ttl: 2s", "ttl: 2 s"),
    ("ttl: 2s", "ttl: 2"),
    ("backend: redis", "backend: rediss"),
    ("gate: before_write", "gate: before_lunch"),
    ("gate: before_write", "rounds: 0"),
    ("start: a.paused", "start: a"),
    ("when: b.write_accepted, ", ""),
    ("fence: off", "fence: of"),
    ("violations: 1..", "violations: 1..."),
    ("violations: 1..", "violations: { stale_acept: 1 }"),
    ("violations: 1..", "violations: {}"),
    ("violations: 1..", "blocked: 2s"),
    ("violations: 1..", "blocked: .."),
    ("violations: 1..", "quiet: 1..2"),
    ("violations: 1..", "order: [a.paused]"),
    ("violations: 1..", "order: [a.paused, b]"),
    ("violations: 1..", "violation: 1.."),
    ("name: pause-gt-ttl", "name: Pause"),
];

#[test]
fn what_the_schema_refuses_the_program_refuses_too() {
    let schema = schema();
    let text = fs::read_to_string(project().join(FILE)).expect("the scenario");
    let steps = BAD_STEPS.iter().map(|step| ("do: { resume: a }", *step));
    for (old, new) in BAD_FIELDS.into_iter().chain(steps) {
        assert!(text.contains(old), "{old}");
        let home = Home::new();
        home.replace(FILE, old, new);
        let changed = fs::read_to_string(home.file(FILE)).expect("a copy");
        let found = complaints(&schema, &scenario(&changed));
        assert!(!found.is_empty(), "the schema takes `{new}`");
        offline(&["--home", home.path(), "validate"]).expect_code(64);
    }
}

/// Asks the program what it knows by a key that is like none of its own.
#[test]
fn the_schema_names_exactly_the_keys_that_the_program_knows() {
    let schema = schema();
    for (place, path) in [
        ("name: pause-gt-ttl", "/properties"),
        ("lock: {", "/$defs/lock/properties"),
        ("  a: {", "/$defs/worker/properties"),
        ("  - {", "/$defs/entry/properties"),
        ("    fence: off", "/$defs/case/properties"),
        ("    expect: {", "/$defs/expect/properties"),
    ] {
        let strange = match place.strip_suffix('{') {
            Some(before) => format!("{before}{{ {STRANGE}: 1,"),
            None => {
                let indent = place.len() - place.trim_start().len();
                format!("{}{STRANGE}: 1\n{place}", " ".repeat(indent))
            }
        };
        let at = schema.pointer(path).expect("a place in the schema");
        assert_eq!(known(place, &strange), keys(at), "{place}");
    }
}

/// The same for the fields of loads.
#[test]
fn the_schema_names_exactly_the_keys_of_each_load() {
    let schema = schema();
    for (file, load) in [("hot-key-fairness", "contend"), ("etcd-leases", "keyspace")] {
        let file = format!("scenarios/{file}.yml");
        let home = Home::new();
        let (before, strange) = (format!("{load}: {{"), format!("{load}: {{ {STRANGE}: 1,"));
        home.replace(&file, &before, &strange);
        let known = known_in(&home);
        let at = &schema["$defs"][load]["properties"];
        assert_eq!(known, keys(at), "{load}");
    }
}

#[test]
fn what_the_schema_refuses_of_a_load_the_program_refuses_too() {
    let schema = schema();
    for (file, old, new) in [
        ("hot-key-fairness", "kind: load", "kind: lode"),
        ("hot-key-fairness", "contenders: 50", "contenders: fifty"),
        ("hot-key-fairness", "rate: 200/s", "rate: 200/m"),
        ("hot-key-fairness", "work: 10ms", "model: ajar"),
        ("etcd-leases", "keys: 20k", "keys: 20q"),
        ("etcd-leases", "keys: 20k", "keys: 20k, effort: 11"),
        ("etcd-leases", "keys: 20k", "keys: 20k, watch: 5"),
    ] {
        let home = Home::new();
        let file = format!("scenarios/{file}.yml");
        home.replace(&file, old, new);
        let changed = fs::read_to_string(home.file(&file)).expect("a copy");
        let found = complaints(&schema, &scenario(&changed));
        assert!(!found.is_empty(), "the schema takes `{new}`");
        offline(&["--home", home.path(), "validate"]).expect_code(64);
    }
}

/// An action may have several forms; toxics have one for each type.
#[test]
fn the_schema_names_exactly_the_keys_that_each_action_has() {
    let schema = schema();
    let forms = schema["$defs"]["step"]["oneOf"].as_array();
    let mut actions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for form in forms.expect("forms of a step") {
        let action = form["required"][0].as_str().expect("the action's key");
        let known = actions.entry(action.to_owned()).or_default();
        known.extend(keys(&form["properties"]));
    }
    assert!(actions.len() > 20, "{actions:?}");
    for (action, keys) in actions {
        let step = format!("do: {{ {STRANGE}: 1, {action}: a }}");
        assert_eq!(known("do: { resume: a }", &step), keys, "{action}");
    }
}

/// Like no key that there is.
const STRANGE: &str = "qqqqqqqqqqqqqqqq";

/// The keys that the program says it knows, where one of them is strange.
#[track_caller]
fn known(place: &str, strange: &str) -> BTreeSet<String> {
    let home = Home::new();
    home.replace(FILE, place, strange);
    known_in(&home)
}

#[track_caller]
fn known_in(home: &Home) -> BTreeSet<String> {
    let ended = offline(&["--home", home.path(), "validate"]).expect_code(64);
    let mut lines = ended.stderr.lines();
    let before = format!("`{STRANGE}`; known: ");
    let known = lines.find_map(|line| line.split_once(&before));
    let (_, known) = known.unwrap_or_else(|| panic!("{ended}"));
    known.split(", ").map(str::to_owned).collect()
}

#[test]
fn every_reference_in_the_schemas_leads_somewhere() {
    fn walk(schema: &Value, at: &Value) {
        if let Some(target) = at["$ref"].as_str() {
            let pointer = target.strip_prefix('#').expect("a local reference");
            assert!(schema.pointer(pointer).is_some(), "{target}");
        }
        match at {
            Value::Object(all) => all.values().for_each(|value| walk(schema, value)),
            Value::Array(all) => all.iter().for_each(|value| walk(schema, value)),
            _ => {}
        }
    }
    for schema in [schema(), results::schema()] {
        assert_eq!(schema["type"], "object");
        walk(&schema, &schema);
    }
}

fn keys(properties: &Value) -> BTreeSet<String> {
    let properties = properties.as_object().expect("properties");
    properties.keys().cloned().collect()
}

fn schema() -> Value {
    let printed = offline(&["schema"]).expect_code(0).stdout;
    serde_json::from_str(&printed).expect("the schema is JSON")
}

/// A scenario as an editor hands it to a schema.
fn scenario(text: &str) -> Value {
    let yaml: serde_yaml::Value = serde_yaml::from_str(text).expect("YAML");
    json!(yaml)
}
