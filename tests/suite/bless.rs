//! `bless`: what may become a baseline, what may not, and what is said about it.

use crate::support::*;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::Path;

/// A scenario with the same cases.
const OTHER: &str = "resource-crash";

fn bless(results: &Results, arguments: &[&str]) -> Ended {
    let shared = ["bless", "--results", results.path()];
    offline(&[&shared[..], arguments].concat())
}

/// A real result of the scenario as it is now.
fn of(name: &str) -> Value {
    let mut result = json(Path::new(&real(name)));
    let file = project().join(format!("scenarios/{SCENARIO}.yml"));
    let text = fs::read(file).expect("the scenario");
    result["stable"]["scenario"]["hash"] = json!(format!("sha256:{:x}", Sha256::digest(text)));
    result
}

fn baseline(results: &Results) -> Option<Value> {
    let path = format!("{}/baseline/{SCENARIO}/result.json", results.path());
    Path::new(&path).exists().then(|| json(Path::new(&path)))
}

#[test]
fn a_good_run_becomes_the_baseline_and_the_next_says_what_it_replaces() {
    let results = Results::new();
    results.run(SCENARIO, &of("good"));
    let ended = bless(&results, &[SCENARIO]).expect_code(0);
    ended.expect_said(&[
        "pause-gt-ttl: /",
        "(the first baseline)",
        "baseline is to be committed",
    ]);
    assert_eq!(baseline(&results), Some(of("good")));
    let root = results.path();
    let sides = ["pause-gt-ttl@baseline", SCENARIO];
    offline(&["diff", sides[0], sides[1], "--results", root]).expect_code(0);

    let again = results.write("again/result.json", of("again").to_string());
    let said = "(replaced: the same verdicts; measurements: 0 of 24 beyond the noise)";
    bless(&results, &[&again])
        .expect_code(0)
        .expect_said(&[said]);
    assert_eq!(baseline(&results), Some(of("again")));
}

#[test]
fn what_is_not_as_expected_is_refused_unless_somebody_insists() {
    let results = Results::new();
    results.run(SCENARIO, &of("mutant"));
    bless(&results, &[]).expect_code(1).expect_said(&[
        "error: nothing was blessed:",
        "it is not as expected; --force takes it",
    ]);
    assert_eq!(baseline(&results), None);
    bless(&results, &["--force"]).expect_code(0);
    assert_eq!(baseline(&results), Some(of("mutant")));
    let good = results.write("good/result.json", of("good").to_string());
    let said = "replaced: a verdict changed (fenced not as expected -> as expected)";
    bless(&results, &[&good])
        .expect_code(0)
        .expect_said(&[said]);
}

#[test]
fn what_nobody_ran_whole_and_plain_is_refused_and_all_of_it_is_told() {
    let results = Results::new();
    let mut partial = of("good");
    partial["stable"]["cases"]
        .as_object_mut()
        .expect("cases")
        .remove("fenced");
    let partial = results.write("partial.json", partial.to_string());
    let mut set = of("good");
    set["stable"]["settings"] = json!(["lock.ttl=5s"]);
    let set = results.write("set.json", set.to_string());
    let mut older = of("good");
    older["stable"]["scenario"]["hash"] = json!("sha256:0");
    let older = results.write("older.json", older.to_string());
    let mut stranger = of("good");
    stranger["stable"]["scenario"]["name"] = json!("stranger");
    let escape = stranger
        .to_string()
        .replace("\"stranger\"", "\"../../escape\"");
    let stranger = results.write("stranger.json", stranger.to_string());
    let escape = results.write("escape.json", escape);
    let text = of("good").to_string();
    let torn = results.write("torn.json", &text[..100]);
    let all = [&partial, &set, &older, &stranger, &escape, &torn].map(String::as_str);
    bless(&results, &all).expect_code(2).expect_said(&[
        "partial.json: it is partial, without fenced: run it whole",
        "set.json: it ran with lock.ttl=5s; --force takes it",
        "older.json: its scenario has been changed since; --force takes it",
        "stranger.json: it is of no scenario here",
        "escape.json: it has schema version 1, but not what belongs to it: \"../../escape\" is not a name",
        "torn.json: it ends in the middle",
    ]);
    bless(&results, &[&partial, "--force"]).expect_code(2);
    assert_eq!(baseline(&results), None);
    bless(&results, &[&set, "--force"]).expect_code(0);
    bless(&results, &[&set, &older, "--force"])
        .expect_code(64)
        .expect_said(&["there are several runs of pause-gt-ttl"]);
}

#[test]
fn what_did_not_finish_is_named_also_where_the_scenario_has_lost_it() {
    let results = Results::new();
    let mut unfinished = of("good");
    unfinished["stable"]["unfinished"] = json!(["gone"]);
    let unfinished = results.write("unfinished.json", unfinished.to_string());
    bless(&results, &[&unfinished])
        .expect_code(2)
        .expect_said(&["unfinished.json: it is partial, without gone: run it whole"]);
}

#[test]
fn where_one_cannot_be_written_none_is_blessed() {
    let results = Results::new();
    results.baseline(SCENARIO, &of("again"));
    let good = results.write("good.json", of("good").to_string());
    let mut other = of("good");
    other["stable"]["scenario"]["name"] = json!(OTHER);
    let other = results.write("other.json", other.to_string());
    // No folder can be made where a file is.
    results.write(&format!("baseline/{OTHER}"), "");
    // The old spelling, which may be in scripts.
    bless(&results, &[&good, &other, "--even-so"])
        .expect_code(70)
        .expect_said(&["cannot write "]);
    assert_eq!(baseline(&results), Some(of("again")));
    let folder = format!("{}/baseline/{SCENARIO}", results.path());
    let left = fs::read_dir(folder).expect("a folder").count();
    assert_eq!(left, 1, "nothing is left beside it");
}

#[test]
fn among_all_latest_runs_those_of_no_scenario_are_left_out() {
    let results = Results::new();
    results.run(SCENARIO, &of("good"));
    let mut contend = of("good");
    contend["stable"]["scenario"]["name"] = json!("contend");
    results.run("contend", &contend);
    let ended = bless(&results, &["latest"]).expect_code(0);
    ended.expect_said(&[
        "left out: ",
        "contend/latest/result.json is of no scenario here",
    ]);
    assert_eq!(baseline(&results), Some(of("good")));
    let empty = Results::new();
    bless(&empty, &[])
        .expect_code(64)
        .expect_said(&["has no results"]);
}

#[test]
fn a_program_is_told_what_was_blessed() {
    let results = Results::new();
    let run = results.run(SCENARIO, &of("good"));
    let told = || -> Value {
        let ended = bless(&results, &["--format", "json"]).expect_code(0);
        serde_json::from_str(&ended.stdout).expect("JSON")
    };
    let file = run.join("result.json").canonicalize().expect("it is there");
    let first = json!({ "scenario": SCENARIO, "result": file, "replaced": null });
    assert_eq!(told(), json!({ "blessed": [first] }));
    let again = told();
    let words = again["blessed"][0]["replaced"].as_str();
    assert_eq!(
        words,
        Some("the same verdicts; measurements: 0 of 24 beyond the noise")
    );
}
