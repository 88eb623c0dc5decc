//! `check`: a recorded run judged again, whole or damaged, without Docker.

use crate::pause_gt_ttl::recorded_run;
use crate::support::*;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

#[test]
fn a_recorded_run_gets_the_same_verdict_without_docker() {
    let _turn = docker_shared();
    let run = recorded_run().to_str().expect("a plain path");
    let said = ["2 of 2 cases as expected", "the same as recorded"];
    offline(&["check", run]).expect_code(0).expect_said(&said);
}

#[test]
fn what_a_later_program_added_is_no_difference_and_what_differs_is_named() {
    let _turn = docker_shared();
    let copy = Copy::new();
    let path = copy.file("result.json");
    let mut result = json(&path);
    result["stable"]["tags"] = serde_json::json!(["later"]);
    result["stable"]["cases"]["fenced"]["cost"] = serde_json::json!(1);
    fs::write(&path, result.to_string()).expect("a copy");
    copy.check(0).expect_said(&["the same as recorded"]);
    result["stable"]["cases"]["fenced"]["verdict"] = serde_json::json!("inconclusive");
    fs::write(&path, result.to_string()).expect("a copy");
    copy.check(0)
        .expect_said(&["this differs from", "(not the same: cases.fenced.verdict)"]);
}

#[test]
fn a_missing_row_of_the_log_makes_it_inconclusive() {
    let _turn = docker_shared();
    let copy = Copy::new();
    let log = copy.file("unfenced/accepted.jsonl");
    let text = fs::read_to_string(&log).expect("a log");
    let first = text.find('\n').expect("a row") + 1;
    fs::write(&log, &text[first..]).expect("a copy");
    copy.check(2)
        .expect_said(&["the log is not whole", "this differs from"]);
}

#[test]
fn a_row_missing_in_the_middle_is_found_too() {
    let _turn = docker_shared();
    let copy = Copy::new();
    let log = copy.file("fenced/accepted.jsonl");
    let text = fs::read_to_string(&log).expect("a log");
    // What a third row would look like, with the second one lost.
    let last = text
        .lines()
        .last()
        .expect("a row")
        .replace("\"seq\":2", "\"seq\":3");
    let first = text.lines().next().expect("a row");
    fs::write(&log, format!("{first}\n{last}\n")).expect("a copy");
    copy.check(2)
        .expect_said(&["position 2 should come next, but 3 does"]);
}

#[test]
fn a_torn_history_makes_it_inconclusive() {
    let _turn = docker_shared();
    let copy = Copy::new();
    let history = copy.file("fenced/history.jsonl");
    let bytes = fs::read(&history).expect("a history");
    let last_line = bytes[..bytes.len() - 1]
        .rsplit(|byte| *byte == b'\n')
        .next();
    let half = last_line.expect("a row").len() / 2;
    fs::write(&history, &bytes[..bytes.len() - half]).expect("a copy");
    copy.check(2)
        .expect_said(&["history.jsonl ends in the middle of a row"]);
}

#[test]
fn a_case_that_was_never_collected_is_inconclusive() {
    let _turn = docker_shared();
    let copy = Copy::new();
    fs::remove_file(copy.file("fenced/case.json")).expect("a copy");
    copy.check(2)
        .expect_said(&["ended before this case was collected"]);
}

#[test]
fn a_case_whose_evidence_was_removed_is_inconclusive() {
    let _turn = docker_shared();
    let copy = Copy::new();
    fs::remove_dir_all(copy.file("fenced")).expect("a copy");
    let said = [
        "1 of 2 cases as expected",
        "has a verdict on fenced",
        "this differs from",
    ];
    copy.check(2).expect_said(&said);
    fs::remove_file(copy.file("result.json")).expect("a copy");
    copy.check(2)
        .expect_said(&["did not finish: fenced", "before it wrote a result.json"]);
    let ended = offline(&["check", copy.path(), "--format", "json"]).expect_code(2);
    assert!(ended.stdout.contains("\"seed\": null"), "{ended}");
}

#[test]
fn a_row_that_no_run_writes_is_named_by_file_and_line() {
    let _turn = docker_shared();
    for (file, garbage) in [
        ("accepted.jsonl", "nonsense\n"),
        ("history.jsonl", "{\"at_ns\":1,\"event\":\"slept\"}\n"),
        ("faults.jsonl", "[]\n"),
        ("locks.jsonl", "\n"),
    ] {
        let copy = Copy::new();
        let path = copy.file(&format!("fenced/{file}"));
        let text = fs::read_to_string(&path).expect("rows");
        let first = text.lines().next().expect("a row");
        fs::write(&path, format!("{first}\n{garbage}")).expect("a copy");
        let ended = offline(&["check", copy.path()]);
        assert!(matches!(ended.code, Some(64)), "{ended}");
        assert!(!ended.stderr.contains("panicked"), "{ended}");
        ended.expect_said(&[&format!("{file}:2: "), "not what a run writes"]);
    }
}

#[test]
fn what_is_no_run_is_refused() {
    let nowhere = ["check", "/nonexistent"];
    offline(&nowhere)
        .expect_code(64)
        .expect_said(&["is not the folder of a run"]);
    let empty = tempfile::tempdir().expect("a temporary folder");
    let empty = empty.path().to_str().expect("a plain path");
    offline(&["check", empty])
        .expect_code(64)
        .expect_said(&["it has no scenario.yml"]);
}

#[test]
fn a_result_of_another_time_is_refused() {
    let _turn = docker_shared();
    let copy = Copy::new();
    let path = copy.file("result.json");
    let mut result = json(&path);
    result["schema_version"] = 999.into();
    fs::write(&path, result.to_string()).expect("a copy");
    copy.check(64)
        .expect_said(&["result.json: it has schema version 999, which is newer than"]);
    fs::write(&path, "{}").expect("a copy");
    copy.check(64).expect_said(&["no schema_version"]);
    fs::write(&path, "half a resu").expect("a copy");
    copy.check(64).expect_said(&["result.json: it is not JSON"]);
}

/// The recorded run, to be damaged.
struct Copy {
    folder: TempDir,
}

impl Copy {
    fn new() -> Copy {
        let folder = tempfile::tempdir().expect("a temporary folder");
        copy_folder(recorded_run(), folder.path());
        Copy { folder }
    }

    fn path(&self) -> &str {
        self.folder.path().to_str().expect("a plain path")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    #[track_caller]
    fn check(&self, code: i32) -> Ended {
        offline(&["check", self.path()]).expect_code(code)
    }
}
