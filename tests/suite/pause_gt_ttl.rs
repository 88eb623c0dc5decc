//! The mandatory experiment, on real containers from the real program.

use crate::support::*;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

const KEY: &str = "account-42";
const RECORDED_WITHIN: Duration = Duration::from_secs(180);

/// One whole run with both cases, recorded once for every test that reads it.
/// Take a turn on Docker first.
pub fn recorded_run() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let results = tmp().join("recorded");
        once("recorded", RECORDED_WITHIN, || {
            fresh_folder("recorded");
            let ended = run(&results, &[]).expect_code(0);
            assert_eq!(owned_by(ended.pid), [""; 0]);
            let said = "as expected (2 of 2 cases";
            assert!(ended.stdout.contains(said), "{ended}");
        });
        results.join(SCENARIO).join("latest")
    })
}

/// Alone, because volumes have no owner: whatever is there more afterwards is ours.
#[test]
fn a_run_leaves_no_volume() {
    let _turn = docker_alone();
    let volumes = docker_ok(&["volume", "ls", "-q"]);
    let results = fresh_folder("volumes");
    run(&results, &["--case", "fenced"]).expect_code(0);
    assert_eq!(docker_ok(&["volume", "ls", "-q"]), volumes);
}

#[test]
fn both_cases_come_out_as_expected() {
    let _turn = docker_shared();
    let run = recorded_run();
    let result = json(&run.join("result.json"));
    assert_eq!(result["schema_version"], 1);
    assert_eq!(result["stable"]["verdict"], "as_expected");
    for case in ["unfenced", "fenced"] {
        let stable = &result["stable"]["cases"][case];
        assert_eq!(stable["verdict"], "as_expected", "{stable:#}");
        assert_eq!(stable["doubts"], json!([]));
        // Other machines are slower or busy with something else: shown, not asserted.
        let overhead = &result["measurements"][case]["overhead_ms"];
        println!("{case}: {overhead} ms beyond the scenario's own waiting");
        assert!(overhead.is_u64());
    }
    for part in ["evidence", "environment"] {
        assert!(result[part].is_object(), "{part}");
    }
}

#[test]
fn without_the_fence_the_stale_write_is_accepted_and_explained() {
    let _turn = docker_shared();
    let run = recorded_run();
    let result = json(&run.join("result.json"));
    let stable = &result["stable"]["cases"]["unfenced"];
    assert_eq!(stable["counts"]["accepted_writers"], 2);
    for kind in ["stale_accept", "lost_update"] {
        assert!(stable["violations"][kind].as_u64() >= Some(1), "{stable:#}");
    }
    assert_eq!(stable["last_writer"][KEY], "a");
    let stories = stable["explanation"].as_array().expect("a list");
    assert!(!stories.is_empty());
    for story in stories {
        let steps = story["steps"].as_array().expect("a list");
        assert!((1..=8).contains(&steps.len()), "{story:#}");
    }
    let accepted = rows(&run.join("unfenced/accepted.jsonl"));
    let tokens: Vec<&Value> = accepted.iter().map(|row| &row["token"]).collect();
    assert_eq!(tokens, [2, 1], "the older token came later");
    assert!(accepted.iter().all(|row| row["outcome"] == "accepted"));
    assert_eq!(value_of(&result, "unfenced")["by"], "a");
}

#[test]
fn with_the_fence_the_stale_write_is_refused_and_counted() {
    let _turn = docker_shared();
    let run = recorded_run();
    let result = json(&run.join("result.json"));
    let stable = &result["stable"]["cases"]["fenced"];
    assert_eq!(stable["violations"], json!({}));
    assert_eq!(stable["counts"]["accepted_writers"], 1);
    assert_eq!(stable["last_writer"][KEY], "b");
    let evidence = &result["evidence"]["fenced"];
    assert_eq!(evidence["resource_stale_token_rejections_total"], 1);
    assert_eq!(value_of(&result, "fenced")["by"], "b");
    let log = rows(&run.join("fenced/accepted.jsonl"));
    let refused: Vec<&Value> = log.iter().filter(|r| r["outcome"] == "rejected").collect();
    assert_eq!(refused.len(), 1, "{log:#?}");
    assert_eq!(
        (&refused[0]["seen"], &refused[0]["token"]),
        (&json!(2), &json!(1))
    );
}

#[test]
fn the_pause_was_seen_and_the_lock_servers_own_view_is_kept() {
    let _turn = docker_shared();
    for case in ["unfenced", "fenced"] {
        let folder = recorded_run().join(case);
        let faults = rows(&folder.join("faults.jsonl"));
        let pause = |stage: &str| {
            let mut rows = faults.iter();
            let found = rows.find(|row| row["fault"] == "pause" && row["stage"] == stage);
            found.unwrap_or_else(|| panic!("{case}: no pause {stage}: {faults:#?}"))
        };
        assert_eq!(pause("requested")["longer_than_ms"], 2_000);
        let seen = pause("observed")["detail"].as_str().expect("what was seen");
        let (_, letters) = seen.split_once("in state ").expect("the states of threads");
        assert!(!letters.is_empty(), "{seen}");
        assert!(letters.split(' ').all(|letter| letter == "T"), "{seen}");

        let locks = rows(&folder.join("locks.jsonl"));
        let events: Vec<&Value> = locks.iter().map(|row| &row["event"]).collect();
        assert_eq!(events[..3], ["granted", "expired", "granted"], "{case}");
    }
}

#[test]
fn a_run_leaves_every_file_of_the_contract_and_latest_points_to_it() {
    let _turn = docker_shared();
    let latest = recorded_run();
    assert!(fs::symlink_metadata(latest).expect("a link").is_symlink());
    let runs = fs::read_dir(latest.parent().expect("a parent")).expect("a folder");
    let mut runs: Vec<PathBuf> = runs.map(|entry| entry.expect("readable").path()).collect();
    runs.retain(|path| !path.is_symlink());
    runs.sort();
    let newest = runs.last().expect("at least one run");
    assert_eq!(&fs::canonicalize(latest).expect("it exists"), newest);
    assert!(newest.to_string_lossy().ends_with("Z-1"), "time and seed");

    let scenario = format!("scenarios/{SCENARIO}.yml");
    let original = fs::read(project().join(scenario)).expect("the scenario");
    assert_eq!(
        fs::read(latest.join("scenario.yml")).expect("a copy"),
        original
    );
    for case in ["unfenced", "fenced"] {
        for name in ["history", "accepted", "faults", "locks"] {
            let path = latest.join(case).join(format!("{name}.jsonl"));
            assert!(!rows(&path).is_empty(), "{}", path.display());
        }
        for node in ["redis", "resource", "a", "b"] {
            let path = latest.join(case).join("logs").join(format!("{node}.log"));
            assert!(path.is_file(), "{}", path.display());
        }
    }
}

#[test]
fn two_runs_have_the_same_stable_part_byte_for_byte() {
    let _turn = docker_shared();
    let results = fresh_folder("again");
    run(&results, &["--case", "fenced"]).expect_code(0);
    let again = json(&results.join(SCENARIO).join("latest/result.json"));
    let first = json(&recorded_run().join("result.json"));
    let text = |value: &Value| serde_json::to_string_pretty(value).expect("JSON");
    let fenced = |result: &Value| text(&result["stable"]["cases"]["fenced"]);
    assert_eq!(fenced(&again), fenced(&first));
    for part in ["scenario", "seed", "mutant", "verdict"] {
        assert_eq!(text(&again["stable"][part]), text(&first["stable"][part]));
    }
}

#[test]
fn a_resource_that_ignores_tokens_is_found_out() {
    let mutant = ["--case", "fenced", "--mutant", "resource-ignores-token"];
    let results = fresh_folder("mutant");
    let ended = run_locally(&results, &mutant).expect_code(1);
    let ended = ended.expect_said(&[
        "not as expected",
        "where 0 was expected",
        "stale_accept",
        "accepts a's write with token 1, although 1 < 2",
        "with the defect `resource-ignores-token` switched on",
    ]);
    let result = json(&results.join(SCENARIO).join("latest/result.json"));
    assert_eq!(result["stable"]["verdict"], "not_as_expected", "{ended}");
}

#[test]
fn a_resource_that_applies_what_it_refuses_is_caught_by_its_value() {
    let mutant = [
        "--case",
        "fenced",
        "--mutant",
        "resource-applies-what-it-refuses",
    ];
    let ended = run_locally(&fresh_folder("applies-refused"), &mutant).expect_code(1);
    ended.expect_said(&[
        "value_not_accepted",
        "account-42 holds something else than what was accepted last",
    ]);
}

#[test]
fn a_pause_that_does_not_bite_is_inconclusive() {
    let sabotage = ["--case", "fenced", "--mutant", "nemesis-only-pretends"];
    let ended = run_locally(&fresh_folder("sabotage"), &sabotage).expect_code(2);
    ended.expect_said(&["inconclusive", "not proven: pause of a", "in state"]);
}

fn run(results: &Path, more: &[&str]) -> Ended {
    let results = results.to_str().expect("a plain path");
    fencepost(&[&["run", SCENARIO, "--results", results], more].concat())
}

/// For what does not depend on where it runs.
fn run_locally(results: &Path, more: &[&str]) -> Ended {
    let results = results.to_str().expect("a plain path");
    let arguments = [&[SCENARIO, "--results", results], more].concat();
    local().run_within(Duration::from_secs(180), &arguments)
}

/// What the resource held in the end.
fn value_of(result: &Value, case: &str) -> Value {
    let text = result["evidence"][case]["values"][KEY].as_str();
    serde_json::from_str(text.expect("a value")).expect("workers write JSON")
}
