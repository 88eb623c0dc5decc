//! `schema`: what an editor accepts is what the program accepts, in form.

mod check;

use crate::support::*;
use check::complaints;
use serde_json::{Value, json};
use std::collections::BTreeSet;
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
fn what_the_schema_refuses_the_program_refuses_too() {
    let schema = schema();
    let text = fs::read_to_string(project().join(FILE)).expect("the scenario");
    for (old, new) in [
        ("topology: redis", "topologie: redis"),
        ("ttl: 2s", "ttl: 2 s"),
        ("ttl: 2s", "ttl: 2"),
        ("backend: redis", "backend: rediss"),
        ("gate: before_write", "gate: before_lunch"),
        ("gate: before_write", "rounds: 0"),
        ("start: a.paused", "start: a"),
        ("do: { resume: a }", "do: {}"),
        ("do: { resume: a }", "do: { resume: a, for: 1s }"),
        ("fence: off", "fence: of"),
        ("violations: 1..", "violations: 1..."),
        ("violations: 1..", "violations: { stale_acept: 1 }"),
        ("violations: 1..", "violation: 1.."),
        ("name: pause-gt-ttl", "name: Pause"),
    ] {
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
        ("lock: {", "/properties/lock/properties"),
        ("  a: {", "/$defs/worker/properties"),
        ("  - {", "/$defs/entry/properties"),
        ("    fence: off", "/$defs/case/properties"),
        ("    expect: {", "/$defs/case/properties/expect/properties"),
        ("do: {", "/$defs/entry/properties/do/oneOf"),
    ] {
        let home = Home::new();
        let strange = match place.strip_suffix('{') {
            Some(before) => format!("{before}{{ qqqqqqqqqqqqqqqq: 1,"),
            None => {
                let indent = place.len() - place.trim_start().len();
                format!("{}qqqqqqqqqqqqqqqq: 1\n{place}", " ".repeat(indent))
            }
        };
        home.replace(FILE, place, &strange);
        let ended = offline(&["--home", home.path(), "validate"]).expect_code(64);
        let mut lines = ended.stderr.lines();
        let known = lines.find_map(|line| line.split_once("`qqqqqqqqqqqqqqqq`; known: "));
        let (_, known) = known.unwrap_or_else(|| panic!("{place}: {ended}"));
        let known: BTreeSet<String> = known.split(", ").map(str::to_owned).collect();
        let at = schema.pointer(path).expect("a place in the schema");
        assert_eq!(known, keys(at), "{place}");
    }
}

#[test]
fn every_reference_in_the_schema_leads_somewhere() {
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
    let schema = schema();
    assert_eq!(schema["type"], "object");
    walk(&schema, &schema);
}

/// The names of properties; of alternatives, those of all together.
fn keys(properties: &Value) -> BTreeSet<String> {
    match properties {
        Value::Array(alternatives) => {
            let all = alternatives.iter();
            all.flat_map(|one| keys(&one["properties"])).collect()
        }
        other => other
            .as_object()
            .expect("properties")
            .keys()
            .cloned()
            .collect(),
    }
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
