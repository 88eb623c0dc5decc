//! A search finds what is broken, makes it small, and finds nothing where nothing is.

mod hunts;
mod real;

use crate::support::*;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Explores with these options; returns the folder of its results, and what it printed.
fn explored(name: &str, code: i32, options: &[&str]) -> (PathBuf, Value) {
    let results = fresh_folder(&format!("explore-{name}"));
    let folder = results.to_str().expect("a plain path");
    let mut arguments = vec!["explore", "--results", folder, "--format", "json"];
    arguments.extend(options);
    let ended = offline(&arguments).expect_code(code);
    let told = serde_json::from_str(&ended.stdout).expect("JSON");
    (results, told)
}

fn finding<'a>(told: &'a Value, kind: &str) -> &'a Value {
    let findings = told["findings"].as_array().expect("a list");
    let shows = |finding: &&Value| {
        let mut others = finding["also"].as_array().expect("a list").iter();
        finding["kind"] == kind || others.any(|other| other == kind)
    };
    findings
        .iter()
        .find(shows)
        .unwrap_or_else(|| panic!("no {kind} in {told:#}"))
}

#[test]
fn nothing_is_found_on_sound_locks() {
    for (backend, tries) in [("redis", "160"), ("redlock", "32"), ("etcd", "64")] {
        let setting = format!("lock.backend={backend}");
        let (_, told) = explored(backend, 0, &["--tries", tries, "--set", &setting]);
        assert_eq!(told["findings"], serde_json::json!([]), "{told:#}");
        assert!(told["faults"].as_u64() > Some(0), "{told:#}");
    }
}

#[test]
fn one_seed_is_one_search_whoever_plays_it_and_in_how_many_parts() {
    let options = ["--seed", "5", "--mutant", "lock-tokens-backwards"];
    let search = |name: &str, more: &[&str]| {
        let (folder, mut told) = explored(name, 1, &[&options[..], more].concat());
        for finding in told["findings"].as_array_mut().expect("a list") {
            finding["file"] = Value::Null;
        }
        (folder, told)
    };
    let (_, whole) = search("whole", &["--tries", "64", "--jobs", "1"]);
    // Parts that end in the middle of a batch.
    let (folder, part) = search("part", &["--tries", "23", "--jobs", "2"]);
    assert_eq!(part["tries"], 23);
    let results = folder.to_str().expect("a plain path");
    let rest = ["explore", "--resume", "--tries", "41", "--results", results];
    let rest = [&rest[..], &options, &["--format", "json"]].concat();
    let mut rest: Value =
        serde_json::from_str(&offline(&rest).expect_code(1).stdout).expect("JSON");
    for finding in rest["findings"].as_array_mut().expect("a list") {
        finding["file"] = Value::Null;
    }
    assert_eq!(rest, whole);
    let others = [
        ("6", "none", "explored.json: No such file"),
        (
            "5",
            "none",
            "it was another search, mutant lock-tokens-backwards and not none",
        ),
        (
            "5",
            "lock-tokens-backwards",
            "it was another search, settings none and not lock.wait=spin",
        ),
    ];
    for (seed, mutant, why) in others {
        let mut other = vec!["explore", "--resume", "--results", results, "--seed", seed];
        if mutant != "none" {
            other.extend(["--mutant", mutant, "--set", "lock.wait=spin"]);
        }
        let ended = offline(&other).expect_code(64);
        ended.expect_said(&["cannot resume from", why, "leave --resume out"]);
    }
}

#[test]
fn what_cannot_be_explored_is_refused_with_a_reason() {
    for (options, said) in [
        (
            &["--tries", "0"][..],
            "nothing would be played; give --tries 1",
        ),
        (&["--for", "0s"], "nothing would be played"),
        (&["--for", "soon"], "it is not a duration"),
        (&["ttl-below-work"], "a load has no timeline to vary"),
        (&["pause-gt-ttl-consul"], "is not simulated"),
        (
            &["pause-gt-ttl", "--case", "fencd"],
            "did you mean `fenced`?",
        ),
        (&["no-such-scenario"], "there is no scenario"),
        (&["--set", "lock.backend=nothing"], "cannot explore a lock"),
    ] {
        let arguments = [&["explore"][..], options].concat();
        offline(&arguments).expect_code(64).expect_said(&[said]);
    }
}

#[test]
#[ignore = "takes minutes: just soak-explore"]
fn the_cases_of_a_scenario_are_varied() {
    let options = [
        "redlock-naive-tokens",
        "--case",
        "naive-fenced",
        "--tries",
        "64",
    ];
    let (_, told) = explored("scenario", 1, &options);
    assert_eq!(told["subject"], "redlock-naive-tokens");
    finding(&told, "token_granted_twice");
}

#[test]
fn a_search_that_is_interrupted_keeps_what_it_has() {
    let results = fresh_folder("explore-interrupted");
    let folder = results.to_str().expect("a plain path");
    let search = [
        "explore",
        "--for",
        "10m",
        "--mutant",
        "lock-grants-everybody",
    ];
    let running = start(command([&search[..], &["--results", folder]].concat()));
    running.await_said("in try");
    running.signal(Signal::SIGINT);
    let ended = running.wait();
    let ended = ended.expect_code(130);
    assert!(
        ended.stdout.contains("granted_while_held"),
        "{}",
        ended.stdout
    );
    let state = json(&results.join("explore/redis-1/explored.json"));
    assert!(
        !state["explored"]["findings"]
            .as_array()
            .expect("a list")
            .is_empty()
    );
}

#[test]
fn what_cannot_be_written_is_printed() {
    let results = fresh_folder("explore-full");
    let folder = results.join("explore/redis-1");
    fs::create_dir_all(&folder).expect("a folder");
    // A folder in the place of a file, as a full disk would: nothing can be written there.
    let begun = explored(
        "full-first",
        1,
        &["--tries", "32", "--mutant", "lock-grants-everybody"],
    );
    let name = Path::new(
        finding(&begun.1, "granted_while_held")["file"]
            .as_str()
            .expect("a file"),
    );
    fs::create_dir(folder.join(name.file_name().expect("a name"))).expect("a folder");
    fs::create_dir(folder.join("explored.json")).expect("a folder");
    let results = results.to_str().expect("a plain path");
    let search = [
        "explore",
        "--tries",
        "32",
        "--mutant",
        "lock-grants-everybody",
    ];
    let ended = offline(&[&search[..], &["--results", results]].concat()).expect_code(1);
    let ended = ended.expect_said(&["cannot write", "the search goes on in memory"]);
    assert!(
        ended.stdout.contains("not written:\n# Found by"),
        "{}",
        ended.stdout
    );
}

#[test]
#[ignore = "takes minutes: just soak-explore"]
fn a_long_search_of_sound_locks_finds_nothing() {
    let tries = std::env::var("FENCEPOST_EXPLORE_TRIES").unwrap_or("2000".to_owned());
    let redis = ["spin", "notify", "queue"].map(|wait| format!("lock.wait={wait}"));
    let others = ["redlock", "etcd", "memory"].map(|backend| format!("lock.backend={backend}"));
    for setting in redis.iter().chain(&others) {
        let results = fresh_folder(&format!("explore-soak-{setting}"));
        let results = results.to_str().expect("a plain path");
        let search = ["explore", "--set", setting, "--tries", &tries];
        let mut search = command([&search[..], &["--results", results]].concat());
        search.env("DOCKER_HOST", "unix:///nonexistent.sock");
        let hours = std::time::Duration::from_secs(6 * 3600);
        start(search).wait_within(hours).expect_code(0);
    }
}
