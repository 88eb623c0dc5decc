//! `diff`: results of real runs compared, and whatever is no result refused.

use crate::support::*;
use serde_json::{Value, json};
use std::path::Path;

/// Runs `diff`, and sees that nothing is said in colours that nobody sees.
fn diff(arguments: &[&str]) -> Ended {
    let ended = offline(&[&["diff"], arguments].concat());
    assert!(!ended.stdout.contains('\u{1b}'), "{ended}");
    ended
}

fn of_scenario(name: &str) -> Value {
    let mut result = good();
    result["stable"]["scenario"]["name"] = json!(name);
    result
}

fn compared(ended: &Ended) -> Value {
    let mut told: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    told["comparisons"].take()
}

#[test]
fn two_good_runs_are_the_same_and_only_the_environment_differs() {
    let ended = diff(&[&real("good"), &real("again")]).expect_code(0);
    let ended = ended.expect_said(&[
        "pause-gt-ttl: the same verdicts",
        "0 of 24 beyond the noise",
        "not the same environment:",
        "image fencepost/self:latest: sha256:",
    ]);
    assert!(!ended.stdout.contains("judged otherwise"), "{ended}");
    assert!(!ended.stdout.contains("not the same conditions"), "{ended}");
}

#[test]
fn a_defect_changes_a_verdict_and_says_how() {
    let (good, mutant) = (real("good"), real("mutant"));
    diff(&[&good, &mutant]).expect_code(1).expect_said(&[
        "pause-gt-ttl: a verdict changed",
        "! fenced    as expected  not as expected",
        "mutant: none -> resource-ignores-token",
        "fenced violations stale_accept: 0 -> 1",
        "fenced stale_rejections: 1 -> 0",
    ]);
    let page = diff(&[&good, &mutant, "--format", "markdown"]).expect_code(1);
    page.expect_said(&["| fenced | as expected | **not as expected** |"]);
    let told = diff(&[&good, &mutant, "--format", "json"]).expect_code(1);
    let difference = &compared(&told)[0]["difference"];
    assert_eq!(difference["verdict_changed"], json!(true));
    let fenced = json!({ "case": "fenced", "old": "as_expected", "new": "not_as_expected" });
    assert_eq!(difference["verdicts"][0], fenced);
}

#[test]
fn measurements_are_marked_from_the_threshold_on() {
    let results = Results::new();
    let mut slow = good();
    slow["measurements"]["fenced"]["quiet_ms"] = json!(2_741 * 2);
    let slow = results.write("slow.json", slow.to_string());
    let line = "! fenced quiet_ms  2.74s  5.48s  x2.00";
    diff(&[&real("good"), &slow])
        .expect_code(0)
        .expect_said(&["1 of 24 beyond the noise", line]);
    diff(&[&real("good"), &slow, "--threshold", "3"])
        .expect_code(0)
        .expect_said(&["0 of 24 beyond the noise"]);
    for wrong in ["0.5", "NaN", "inf", "much"] {
        diff(&[&real("good"), &slow, "--threshold", wrong])
            .expect_code(64)
            .expect_said(&["a ratio of at least 1 is needed"]);
    }
}

#[test]
fn what_is_no_whole_result_is_refused_on_both_sides_at_once() {
    let results = Results::new();
    let text = good().to_string();
    let torn = results.write("torn.json", &text[..text.len() / 2]);
    let newer = text.replace("\"schema_version\":1", "\"schema_version\":7");
    let newer = results.write("newer.json", newer);
    let foreign = results.write("foreign.json", "{\"name\": \"package\"}");
    let image = results.write("image.json", [0x89, 0x50, 0x4e, 0x47]);
    let empty = results.write("empty.json", "");
    let said = ["not comparable", "torn.json: it ends in the middle"];
    diff(&[&real("good"), &torn])
        .expect_code(2)
        .expect_said(&said);
    diff(&[&newer, &foreign])
        .expect_code(2)
        .expect_said(&[
            "newer.json: it has schema version 7, which is newer than this program's 1",
            "foreign.json: it is not a result of fencepost: it has no schema_version",
        ])
        .expect_short_error(3);
    diff(&[&image, &empty]).expect_code(2).expect_said(&[
        "image.json: it is not JSON",
        "empty.json: it ends in the middle",
    ]);
    let told = diff(&[&torn, &real("good"), "--format", "json"]).expect_code(2);
    let reasons = &compared(&told)[0]["not_comparable"];
    assert_eq!(reasons.as_array().map(Vec::len), Some(1), "{told}");
}

#[test]
fn runs_of_different_scenarios_are_not_comparable() {
    let results = Results::new();
    let storm = results.write("storm.json", of_scenario("storm").to_string());
    let said = ["these are runs of different scenarios, pause-gt-ttl and storm"];
    diff(&[&real("good"), &storm])
        .expect_code(2)
        .expect_said(&said);
}

#[test]
fn a_run_that_was_killed_half_way_names_what_it_had_not_judged() {
    let results = Results::new();
    let mut killed = good();
    for part in ["stable", "evidence", "measurements"] {
        let cases = match part {
            "stable" => &mut killed["stable"]["cases"],
            part => &mut killed[part],
        };
        cases.as_object_mut().expect("cases").remove("fenced");
    }
    killed["stable"]["unfinished"] = json!(["fenced"]);
    killed["stable"]["verdict"] = json!("inconclusive");
    let killed = results.write("killed.json", killed.to_string());
    diff(&[&real("good"), &killed])
        .expect_code(1)
        .expect_said(&[
            "! fenced    as expected   unfinished",
            "the new run ended before it had judged fenced",
        ]);
    results.write("none/scenario.yml", "name: none");
    let none = format!("{}/none", results.path());
    diff(&[&real("good"), &none])
        .expect_code(2)
        .expect_said(&["the run ended before it wrote a result.json"]);
}

#[test]
fn folders_and_names_lead_to_results() {
    let results = Results::new();
    let run = results.run("pause-gt-ttl", &good());
    results.baseline("pause-gt-ttl", &json(Path::new(&real("again"))));
    let (root, run) = (results.path(), run.to_str().expect("a plain path"));
    let scenario = format!("{root}/pause-gt-ttl");
    let sides = [
        (run, scenario.as_str()),
        ("pause-gt-ttl@baseline", "pause-gt-ttl"),
        ("pause-gt-ttl@baseline", "pause-gt-ttl@latest"),
        ("baseline", run),
        ("baseline", "latest"),
        (run, "latest"),
    ];
    for (old, new) in sides {
        let ended = diff(&[old, new, "--results", root]).expect_code(0);
        ended.expect_said(&["pause-gt-ttl: the same verdicts"]);
    }
}

#[test]
fn many_are_compared_scenario_by_scenario() {
    let results = Results::new();
    results.baseline("calm", &of_scenario("calm"));
    results.run("calm", &of_scenario("calm"));
    results.run("fresh", &of_scenario("fresh"));
    let all = ["baseline", "latest", "--results", results.path()];
    diff(&all)
        .expect_code(0)
        .expect_said(&["calm: the same", "fresh: only the new side has a run of it"]);
    results.baseline("gone", &of_scenario("gone"));
    diff(&all)
        .expect_code(2)
        .expect_said(&["gone: not comparable", "the new side has no run of it"]);
    let mut worse = json(Path::new(&real("mutant")));
    worse["stable"]["scenario"]["name"] = json!("worse");
    results.baseline("worse", &of_scenario("worse"));
    results.run("worse", &worse);
    let told = diff(&[&all[..], &["--format", "json"]].concat()).expect_code(1);
    assert_eq!(compared(&told).as_array().map(Vec::len), Some(4), "{told}");
}

#[test]
fn what_is_not_there_is_wrong_usage_and_both_sides_are_told() {
    let results = Results::new();
    results.run("calm", &of_scenario("calm"));
    let root = results.path();
    diff(&["clam", "calm@yesterday", "--results", root])
        .expect_code(64)
        .expect_said(&[
            "`clam` is neither a file, nor a folder, nor a scenario with a result",
            "there are those of calm",
            "`@yesterday` is neither @latest nor @baseline",
        ]);
    diff(&["/no/such/result.json", "calm", "--results", root])
        .expect_code(64)
        .expect_said(&["there is no file or folder /no/such/result.json"]);
    diff(&["baseline", "latest", "--results", root])
        .expect_code(64)
        .expect_said(&["baseline has no results"]);
    diff(&["calm"]).expect_code(64);
}

#[test]
fn narrow_terminals_get_narrow_lines() {
    let mut command = command(["diff", &real("good"), &real("mutant"), "--all"]);
    command.env("COLUMNS", "48");
    let ended = start(command).wait().expect_code(1);
    // Only what cannot be parted is longer: hashes and paths.
    let mut long = ended
        .stdout
        .lines()
        .filter(|line| line.chars().count() > 48);
    let parted = long.find(|line| line.split_whitespace().count() > 2);
    assert_eq!(parted, None, "{ended}");
}
