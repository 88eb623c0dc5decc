//! Every scenario that is shipped, once, as `fencepost run --all` runs them;
//! and the page that says what they are.

use crate::support::*;
use fencepost::model::Expectations;
use fencepost::scenario::{Library, Scenario, Settings, Surroundings};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// The issue of all of them is at most ten minutes; a busy machine gets more.
const ALL_OF_THEM: Duration = Duration::from_secs(1200);
const STORM: &str = "storm";

#[test]
fn every_scenario_comes_out_as_expected() {
    let Some(_turn) = docker_alone() else { return };
    let results = fresh_folder("library");
    let (names, _) = faults_and_loads();
    let names = names
        .iter()
        .map(String::as_str)
        .filter(|name| *name != STORM);
    let names: Vec<&str> = names.collect();
    run_all(&results, &names, &[]);
    for name in names {
        came_out_as_expected(&results, name);
    }
    for name in ["pause-gt-ttl-redlock", "pause-gt-ttl-etcd"] {
        a_majority_saw_it(&results.join(name).join("latest"));
    }
}

/// The lock servers' own view of a hold that ran out. A node of the five to
/// which the holder was still connecting when the majority had answered is not
/// asked.
fn a_majority_saw_it(run: &Path) {
    for case in ["unfenced", "fenced"] {
        let locks = rows(&run.join(case).join("locks.jsonl"));
        for event in ["granted", "expired"] {
            let seen = locks.iter().filter(|row| row["event"] == event);
            let nodes: BTreeSet<&str> = seen.filter_map(|row| row["node"].as_str()).collect();
            assert!(nodes.len() >= 3, "{event} at {nodes:?}: {locks:#?}");
        }
    }
}

/// A defect, the case that shows it, what has to be set for that, and the rule
/// that is meant for it.
struct Defect {
    name: &'static str,
    scenario: &'static str,
    case: &'static str,
    settings: &'static [&'static str],
    rule: &'static str,
}

#[rustfmt::skip]
const DEFECTS: [Defect; 15] = [
    defect("lock-grants-everybody", "pause-gt-ttl", "fenced", "granted_while_held"),
    defect("lock-enters-without-the-lock", "pause-gt-ttl", "fenced", "claimed_not_granted"),
    defect("lock-enters-without-the-lock", "pause-gt-ttl-etcd", "fenced", "claimed_not_granted"),
    Defect {
        // Whoever waits for a key that never becomes free waits until the deadline.
        settings: &["deadline=25s", "workers.a.work=20s"],
        ..defect("lock-never-expires", "ttl-sweep", "kill-500ms", "never_granted")
    },
    defect("lock-tokens-backwards", "healthy", "redis-fenced", "token_not_growing"),
    defect("lock-takes-token-before-grant", "healthy", "redis-fenced", "token_not_growing"),
    defect("lock-releases-without-compare", "release-toctou", "compare-and-delete", "freed_another"),
    defect("lock-renew-recreates", "redis-restart-empty", "renewing-holder-stops", "renewal_recreated"),
    defect("resource-accepts-equal-tokens", "redis-failover", "fenced", "token_two_owners"),
    defect("resource-forgets-at-restart", "resource-crash", "fenced", "token_regression"),
    defect("resource-loses-a-key", "healthy", "redis-fenced", "value_not_accepted"),
    defect("resource-duplicates-for-strangers", "redis-failover", "fenced", "untrue_repetition"),
    defect("resource-refuses-the-highest", "healthy", "redis-fenced", "refused_without_reason"),
    defect("resource-states-a-wrong-maximum", "pause-gt-ttl", "fenced", "untrue_refusal"),
    defect("resource-names-a-position-twice", "healthy", "redis-fenced", "position_named_twice"),
];

const fn defect(
    name: &'static str,
    scenario: &'static str,
    case: &'static str,
    rule: &'static str,
) -> Defect {
    Defect {
        name,
        scenario,
        case,
        settings: &[],
        rule,
    }
}

/// Not only is each case not as expected: the rule that is meant for the defect
/// says so, and no fault excuses it.
#[test]
fn defects_are_caught_by_the_scenarios_that_are_named_for_them() {
    let Some(_turn) = docker_alone() else { return };
    for defect in DEFECTS {
        let Defect {
            name,
            scenario,
            case,
            rule,
            ..
        } = defect;
        let results = fresh_folder(&format!("{name}-{scenario}"));
        let folder = results.to_str().expect("a readable path");
        let run = ["run", scenario, "--case", case, "--results", folder];
        let settings = defect.settings.iter().flat_map(|it| ["--set", it]);
        let arguments: Vec<&str> = run.into_iter().chain(settings).collect();
        let ended = fencepost(&[&arguments[..], &["--mutant", name]].concat());
        let switched_on = format!("with the defect `{name}` switched on");
        ended.expect_code(1).expect_said(&[&switched_on]);
        let evidence = &latest(&results, scenario)["evidence"][case];
        let violations = evidence["violations"].as_array().expect("violations");
        let meant = |it: &Value| it["kind"] == rule && it["excuse"].is_null();
        assert!(violations.iter().any(meant), "{name}: {violations:#?}");
    }
}

#[test]
fn the_page_of_mutants_names_the_scenario_and_the_rule_of_each_defect() {
    let page = fs::read_to_string(project().join("docs/mutants.md")).expect("a page");
    for defect in DEFECTS {
        let row = format!("| `{}` |", defect.name);
        let row = page.lines().find(|line| line.starts_with(&row));
        let row = row.unwrap_or_else(|| panic!("no row for {}", defect.name));
        let Defect { scenario, case, .. } = defect;
        let settings = defect.settings.iter().map(|it| format!("`{it}`"));
        let shown = [format!("`{scenario}/{case}`"), format!("`{}`", defect.rule)];
        for words in settings.chain(shown) {
            assert!(row.contains(&words), "{row}: {words}");
        }
        loaded(scenario)
            .cases
            .iter()
            .find(|it| it.name == case)
            .expect(case);
    }
}

/// With fewer workers on fewer keys, as many of them on each.
#[test]
fn a_storm_is_weathered_with_a_fence_and_not_without() {
    let Some(_turn) = docker_alone() else { return };
    let results = fresh_folder("storm");
    let fewer = ["x", "y", "z"].map(|group| format!("workers.{group}.copies=4"));
    let set: Vec<&str> = fewer.iter().flat_map(|it| ["--set", it.as_str()]).collect();
    run_all(&results, &[STORM], &set);
    let result = came_out_as_expected(&results, STORM);
    assert_eq!(result["stable"]["settings"], serde_json::json!(fewer));
    for case in ["redis", "redlock", "etcd"] {
        let stable = &result["stable"]["cases"][case];
        assert_eq!(
            stable["counts"],
            Value::Null,
            "counts differ from run to run"
        );
        let counts = &result["evidence"][case]["counts"];
        assert!(counts["accepted_writes"].as_u64() > Some(0), "{counts}");
    }
}

/// The figures of a small load mean nothing; that it is judged, and how, does.
#[test]
fn every_load_comes_out_as_expected_at_a_small_size() {
    let Some(_turn) = docker_alone() else { return };
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
            "etcd-leases" => "keyspace.keys=200 lock.ttl=2s",
            other => panic!("how small is {other}?"),
        };
        let set: Vec<&str> = small.split(' ').flat_map(|it| ["--set", it]).collect();
        run_all(&results, &[name.as_str()], &set);
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
const HARMLESS: [&str; 3] = ["healthy", "lock-service-down", "long-work"];

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
    let library = Library::new(project().join("scenarios"));
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

/// A machine that is too busy to prove a fault gives no verdict; such a scenario
/// gets two more chances, with the machine for itself. A wrong verdict gets none.
fn run_all(results: &Path, names: &[&str], more: &[&str]) {
    let ended = run(results, &[names, &["--jobs", "4"], more].concat());
    if ended.code != Some(INCONCLUSIVE) {
        ended.expect_code(0);
        return;
    }
    for name in names {
        for chance in 1..=2 {
            if verdict(&latest(results, name)) != "inconclusive" {
                break;
            }
            let ended = run(results, &[&[*name, "--jobs", "1"], more].concat());
            if chance == 2 || ended.code != Some(INCONCLUSIVE) {
                ended.expect_code(0);
            }
        }
    }
}

const INCONCLUSIVE: i32 = 2;

fn run(results: &Path, arguments: &[&str]) -> Ended {
    let results = results.to_str().expect("a readable path");
    let given = [&["run"], arguments, &["--results", results]].concat();
    start(command(given)).wait_within(ALL_OF_THEM)
}

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
