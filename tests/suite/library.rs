//! Every scenario that is shipped, the defects that they catch, and the page that
//! says what they are.

mod comparison;
mod defects;
mod scenarios;
mod simulated;

use crate::support::*;
use fencepost::model::Expectations;
use fencepost::scenario::{Library, Scenario, Settings, Surroundings};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest takes two minutes; a busy machine gets more.
const WITHIN: Duration = Duration::from_secs(600);
const STORM: &str = "storm";

#[test]
fn a_storm_is_weathered_with_a_fence() {
    a_small_storm("redis");
}

#[test]
fn a_storm_corrupts_without_a_fence() {
    a_small_storm("redis-unfenced");
}

/// With fewer workers on fewer keys, as many of them on each, and one server. `just soak` has
/// the storms on several servers.
fn a_small_storm(case: &str) {
    let results = fresh_folder(&format!("storm-{case}"));
    let fewer = ["x", "y", "z"].map(|group| format!("workers.{group}.copies=4"));
    let set = fewer.iter().flat_map(|it| ["--set", it.as_str()]);
    let arguments: Vec<&str> = ["--case", case].into_iter().chain(set).collect();
    run_scenario(Runtime::Docker, &results, STORM, &arguments);
    let result = came_out_as_expected(&results, STORM);
    assert_eq!(result["stable"]["settings"], serde_json::json!(fewer));
    let counts = &result["stable"]["cases"][case]["counts"];
    assert_eq!(counts, &Value::Null, "counts differ from run to run");
    let counts = &result["evidence"][case]["counts"];
    assert!(counts["accepted_writes"].as_u64() > Some(0), "{counts}");
}

/// The figures of a small load mean nothing; that it is judged, and how, does.
#[test]
fn every_load_comes_out_as_expected_at_a_small_size() {
    let results = fresh_folder("loads");
    let (_, names) = faults_and_loads();
    let mut ran = 0;
    for name in &names {
        let small = match name.as_str() {
            "hot-key-contention" => "duration=1s contend.contenders=[4]",
            "hot-key-fairness" => "duration=1s contend.contenders=6 contend.rate=40/s",
            "ttl-below-work" => "duration=3s",
            "ten-million-keys" => {
                "keyspace.keys=20k lock.ttl=2s keyspace.counters=3s keyspace.watch=4s"
            }
            "fence-counters" => "duration=1s contend.contenders=4 contend.floor=1s",
            "etcd-leases" => "keyspace.keys=200 lock.ttl=2s",
            // Tests of its own play two of its services.
            "compare-services" => continue,
            other => panic!("how small is {other}?"),
        };
        let set: Vec<&str> = small.split(' ').flat_map(|it| ["--set", it]).collect();
        run_scenario(Runtime::Local, &results, name, &set);
        let result = came_out_as_expected(&results, name);
        let measured = result["measurements"].as_object().expect("cases");
        for (case, measured) in measured {
            let load = measured["load"].as_object().expect("a load");
            let has_more = load.contains_key("steps") || load.contains_key("keyspace");
            assert!(has_more, "{name} {case}: {load:#?}");
            ran += 1;
        }
    }
    assert!(ran > names.len(), "{ran} cases of {names:?}");
}

#[test]
fn the_page_of_scenarios_is_made_from_the_files() {
    let printed = offline(&["list", "--markdown"]).expect_code(0).stdout;
    let file = project().join("docs/scenarios.md");
    let written = fs::read_to_string(&file).unwrap_or_default();
    let how = "cargo run -- list --markdown > docs/scenarios.md";
    assert!(
        written == printed,
        "{} is out of date: {how}",
        file.display()
    );
}

/// What a colleague is told first.
#[test]
fn every_scenario_opens_with_its_hypothesis() {
    for name in scenario_names() {
        let file = project()
            .join("scenarios")
            .join(&name)
            .with_extension("yml");
        let text = fs::read_to_string(file).unwrap();
        assert!(text.starts_with("# "), "{name} opens with a remark");
        let words = about(&text).split_whitespace();
        let sentences = words.filter(|word| word.ends_with('.')).count();
        assert_eq!(sentences, 2, "{name}: a hypothesis is two sentences");
    }
}

/// Where nothing may ever go wrong, whatever the resource compares.
const HARMLESS: [&str; 5] = [
    "dynamodb-lost-answer",
    "healthy",
    "lock-service-down",
    "long-work",
    "zookeeper-leader-kill",
];

#[test]
fn every_scenario_has_a_case_that_must_break_and_one_that_must_not() {
    let (faults, loads) = faults_and_loads();
    assert!(
        loads.len() > 3,
        "loads measure, and need not break anything"
    );
    for name in faults {
        let cases = loaded(&name).cases;
        let breaks = |expect: &Expectations| {
            let kinds = expect.violations_by_kind.values();
            let mut expected = kinds.chain(&expect.violations);
            expected.any(|range| range.min > 0)
        };
        let breaking = cases.iter().filter(|case| breaks(&case.expect)).count();
        let harmless = HARMLESS.contains(&name.as_str());
        assert_eq!(breaking == 0, harmless, "{name}: {breaking} cases break");
        assert!(breaking < cases.len(), "{name} has no case that holds");
    }
}

/// What a night is compared with, with every case of today's files.
#[test]
fn every_scenario_of_faults_has_a_reviewed_baseline() {
    for name in faults_and_loads().0 {
        let baseline = project().join("results/baseline").join(&name);
        let result = json(&baseline.join("result.json"));
        assert_eq!(verdict(&result), "as_expected", "{name}");
        let cases = loaded(&name).cases.into_iter().map(|case| case.name.into());
        let judged = result["stable"]["cases"].as_object().expect("cases");
        assert_eq!(
            judged.keys().cloned().collect::<BTreeSet<String>>(),
            cases.collect(),
            "{name}: run it and bless the run"
        );
    }
}

fn about(text: &str) -> &str {
    let from = text.find("about:").expect("an about");
    let to = text[from..].find("\ntopology:").expect("a topology");
    &text[from..from + to]
}

fn loaded(name: &str) -> Scenario {
    let library = Library::new([project().join("scenarios")]);
    let scenario = library.load(name, &Settings::default(), &Surroundings::Recorded);
    scenario.unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The names of those with faults, which `--all` runs, and of those with a load.
fn faults_and_loads() -> (Vec<String>, Vec<String>) {
    let is_fault = |name: &String| !loaded(name).is_load();
    scenario_names().into_iter().partition(is_fault)
}

fn scenario_names() -> Vec<String> {
    let files = fs::read_dir(project().join("scenarios")).unwrap();
    let files = files.map(|file| file.unwrap().path());
    let files = files.filter(|file| file.extension().is_some_and(|ext| ext == "yml"));
    let mut names: Vec<String> = files
        .map(|file| file.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Where a scenario is played.
#[derive(Clone, Copy, PartialEq)]
enum Runtime {
    Docker,
    Local,
    Sim,
}

impl Runtime {
    fn name(self) -> &'static str {
        match self {
            Runtime::Docker => "docker",
            Runtime::Local => "local",
            Runtime::Sim => "sim",
        }
    }

    /// Runs the program beside other tests.
    fn run(self, arguments: &[&str]) -> Ended {
        match self {
            Runtime::Docker => run_on_docker(docker_shared(), arguments),
            Runtime::Local => local_with_databases().run_within(WITHIN, arguments),
            Runtime::Sim => run_simulated(arguments),
        }
    }

    fn run_alone(self, arguments: &[&str]) -> Ended {
        match self {
            Runtime::Docker => run_on_docker(docker_alone(), arguments),
            Runtime::Local => local_alone().with_databases().run_within(WITHIN, arguments),
            Runtime::Sim => run_simulated(arguments),
        }
    }
}

fn run_on_docker(_turn: Turn, arguments: &[&str]) -> Ended {
    let given = [&["run", "--runtime", "docker"], arguments].concat();
    start(command(given)).wait_within(WITHIN)
}

/// It needs neither a turn nor a server.
fn run_simulated(arguments: &[&str]) -> Ended {
    offline(&[&["run", "--runtime", "sim"], arguments].concat())
}

fn run_scenario(runtime: Runtime, results: &Path, name: &str, more: &[&str]) {
    run_until_judged(runtime, results, name, more).expect_code(0);
}

/// A machine that is too busy to prove a fault gives no verdict; such a scenario
/// gets two more chances, with the machine for itself. A wrong verdict gets none.
fn run_until_judged(runtime: Runtime, results: &Path, name: &str, more: &[&str]) -> Ended {
    let results = results.to_str().expect("a readable path");
    let arguments = [&[name, "--results", results], more].concat();
    let mut ended = runtime.run(&arguments);
    for _ in 0..2 {
        if ended.code == Some(INCONCLUSIVE) {
            println!("once more, alone: {ended}");
            ended = runtime.run_alone(&[&arguments[..], &["--jobs", "1"]].concat());
        }
    }
    ended
}

const INCONCLUSIVE: i32 = 2;

fn latest(results: &Path, name: &str) -> Value {
    json(&results.join(name).join("latest/result.json"))
}

fn verdict(result: &Value) -> &str {
    result["stable"]["verdict"].as_str().unwrap_or_default()
}

fn came_out_as_expected(results: &Path, name: &str) -> Value {
    let result = latest(results, name);
    let stable = &result["stable"];
    assert_eq!(verdict(&result), "as_expected", "{stable:#}");
    assert_eq!(stable["unfinished"], serde_json::json!([]));
    result
}
