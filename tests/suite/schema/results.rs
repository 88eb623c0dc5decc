//! `schema --result`: every result there is fits it, and what does not is no result.

use super::check::complaints;
use crate::pause_gt_ttl::recorded_run;
use crate::support::*;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

pub fn schema() -> Value {
    let printed = offline(&["schema", "--result"]).expect_code(0).stdout;
    serde_json::from_str(&printed).expect("the schema is JSON")
}

/// The folder of a run that was recorded once and is kept.
fn kept(name: &str) -> PathBuf {
    project().join("tests/results").join(name)
}

/// Every one of them.
fn all_kept() -> Vec<PathBuf> {
    let folders = |folder: &Path| {
        let entries = std::fs::read_dir(folder).expect("a folder");
        entries
            .map(|entry| entry.expect("readable").path())
            .collect::<Vec<_>>()
    };
    let runs: Vec<PathBuf> = folders(&kept(""))
        .iter()
        .flat_map(|one| folders(one))
        .collect();
    assert!(runs.len() >= 6, "{runs:?}");
    runs
}

fn shown(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

#[test]
fn every_kept_result_fits_the_schema() {
    let schema = schema();
    for run in all_kept() {
        let result = json(&run.join("result.json"));
        assert_eq!(complaints(&schema, &result), [""; 0], "{}", run.display());
    }
}

#[test]
fn a_fresh_result_fits_the_schema_of_its_version() {
    let _turn = docker_shared();
    let result = json(&recorded_run().join("result.json"));
    let schema = schema();
    assert_eq!(complaints(&schema, &result), [""; 0]);
    let version = result["schema_version"].to_string();
    assert_eq!(
        schema["$id"],
        json!(format!("urn:fencepost:result:{version}"))
    );
}

#[test]
fn what_is_added_later_fits_and_what_is_wrong_does_not() {
    let schema = schema();
    let good = json(&kept("pause-gt-ttl/good/result.json"));
    let mut added = good.clone();
    added["stable"]["cases"]["fenced"]["mood"] = json!("good");
    added["later"] = json!([1]);
    assert_eq!(complaints(&schema, &added), [""; 0]);
    for (place, wrong) in [
        ("/schema_version", json!(2)),
        ("/stable/verdict", json!("splendid")),
        ("/stable/seed", json!("one")),
        ("/stable/settings", json!({})),
        ("/stable/cases/fenced/verdict", json!(null)),
        ("/stable/cases/fenced/fence", json!("perhaps")),
        ("/stable/cases/fenced/counts/accepted_writes", json!(-1)),
        ("/stable/cases/fenced/findings/0/held", json!("yes")),
        ("/stable/cases/fenced/faults/0/fault", json!("sabotage")),
        ("/stable/cases/fenced/faults/0/came_to", json!("done")),
        (
            "/stable/cases/unfenced/explanation/0/violations/0",
            json!("theft"),
        ),
        ("/evidence/unfenced/violations/0/row", json!("first")),
        ("/evidence/fenced/faults/0/stage", json!("done")),
        ("/measurements/fenced/scenario_ms", json!("long")),
        ("/environment/kernel", json!(6)),
    ] {
        let mut result = good.clone();
        *result
            .pointer_mut(place)
            .unwrap_or_else(|| panic!("{place}")) = wrong;
        assert!(!complaints(&schema, &result).is_empty(), "{place}");
    }
    for part in [
        "schema_version",
        "stable",
        "evidence",
        "measurements",
        "environment",
    ] {
        let mut result = good.clone();
        result.as_object_mut().expect("an object").remove(part);
        assert!(!complaints(&schema, &result).is_empty(), "{part}");
    }
}

#[test]
fn old_runs_can_still_be_judged_again() {
    for (run, code, said) in [
        ("pause-gt-ttl/settings", 0, "with lock.ttl=3s"),
        (
            "pause-gt-ttl/killed",
            2,
            "the run ended before it had judged fenced",
        ),
        ("hot-key-fairness/small", 0, "contend.rate=5/s"),
        ("keyspace/small", 0, "the same as recorded"),
    ] {
        let run = kept(run);
        offline(&["check", shown(&run)])
            .expect_code(code)
            .expect_said(&[said]);
        let told = offline(&["check", shown(&run), "--format", "json"]).expect_code(code);
        let told: Value = serde_json::from_str(&told.stdout).expect("one document");
        let recorded = &json(&run.join("result.json"))["stable"];
        assert_eq!(told["stable"]["seed"], recorded["seed"]);
        assert_eq!(told["stable"]["verdict"], recorded["verdict"]);
        assert_eq!(told["stable"]["settings"], recorded["settings"]);
    }
}

#[test]
fn old_results_can_still_be_compared() {
    let compare = |old: &str, new: &str, code: i32| {
        let (old, new) = (kept(old), kept(new));
        offline(&["diff", shown(&old), shown(&new)]).expect_code(code)
    };
    let good = "pause-gt-ttl/good";
    let same = compare(good, "pause-gt-ttl/settings", 0);
    same.expect_said(&["the same verdicts", "settings: none -> lock.ttl=3s"]);
    let killed = compare(good, "pause-gt-ttl/killed", 1);
    killed.expect_said(&["the new run ended before it had judged fenced"]);
    compare("hot-key-fairness/small", "hot-key-fairness/small", 0);
    compare(good, "hot-key-fairness/small", 2).expect_said(&["runs of different scenarios"]);
}
