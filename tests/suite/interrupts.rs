//! Ctrl-C and SIGTERM at different phases of a run: it heals, removes
//! everything, keeps its evidence and ends with 130.

use crate::support::*;
use nix::sys::signal::Signal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[test]
fn ctrl_c_while_containers_start_removes_them() {
    let _turn = docker_shared();
    let events = Events::watch();
    let (run, folder) = run("ctrl-c-start", &["--case", "fenced"]);
    events.await_container("create", run.pid);
    run.signal(Signal::SIGINT);
    let ended = interrupted(run);
    assert_eq!(owned_by(ended.pid), [""; 0]);
    assert!(folder.join("scenario.yml").is_file(), "evidence is kept");
    assert!(folder.join("fenced/history.jsonl").is_file());
}

#[test]
fn ctrl_c_while_a_worker_is_frozen_heals_it_and_keeps_the_evidence() {
    let _turn = docker_shared();
    let (run, folder) = run("ctrl-c-scenario", &["--jobs", "1"]);
    await_pause(&folder, "unfenced");
    run.signal(Signal::SIGINT);
    let ended = interrupted(run);
    assert_eq!(owned_by(ended.pid), [""; 0]);
    let faults = rows(&folder.join("unfenced/faults.jsonl"));
    let last = faults.last().expect("rows");
    assert_eq!(
        (&last["fault"], &last["stage"]),
        (&"pause".into(), &"healed".into())
    );
    assert!(!rows(&folder.join("unfenced/history.jsonl")).is_empty());
    assert!(!folder.join("fenced").exists(), "the next case never began");
    let page = std::fs::read_to_string(folder.join("report.html")).expect("a page");
    for words in [
        "ended before it had judged unfenced, fenced",
        "not certain: interrupted",
        "class=\"mark a-fault\"",
    ] {
        assert!(page.contains(words), "{words} is not in {page}");
    }
    let folder = folder.to_str().expect("a plain path");
    offline(&["check", folder]).expect_code(2).expect_said(&[
        "not certain: interrupted",
        "ended before it had judged unfenced, fenced",
    ]);
}

#[test]
fn ctrl_c_while_the_last_case_is_removed_lets_the_removal_end() {
    let _turn = docker_shared();
    let events = Events::watch();
    let (run, folder) = run("ctrl-c-clean", &["--case", "fenced"]);
    events.await_container("destroy", run.pid);
    run.signal(Signal::SIGINT);
    let ended = interrupted(run);
    assert_eq!(owned_by(ended.pid), [""; 0]);
    assert!(!rows(&folder.join("fenced/accepted.jsonl")).is_empty());
}

#[test]
fn sigterm_and_a_closed_terminal_are_answered_like_ctrl_c() {
    let _turn = docker_shared();
    for signal in [Signal::SIGTERM, Signal::SIGHUP] {
        let (run, folder) = run(signal.as_str(), &["--case", "fenced"]);
        await_pause(&folder, "fenced");
        run.signal(signal);
        let ended = interrupted(run);
        assert_eq!(owned_by(ended.pid), [""; 0]);
    }
}

#[test]
fn a_second_ctrl_c_ends_at_once_and_clean_removes_the_rest() {
    let _turn = docker_shared();
    let (run, folder) = run("ctrl-c-twice", &["--case", "fenced"]);
    await_pause(&folder, "fenced");
    run.signal(Signal::SIGINT);
    run.await_said("once more stops at once");
    run.signal(Signal::SIGINT);
    let asked_at = Instant::now();
    let ended = run.wait().expect_code(130);
    assert!(asked_at.elapsed() < Duration::from_secs(5));
    let ended = ended.expect_said(&["`fencepost clean` removes what is left"]);
    fencepost(&["clean"]).expect_cleaned();
    assert_eq!(owned_by(ended.pid), [""; 0]);
}

fn run(name: &str, more: &[&str]) -> (Running, PathBuf) {
    let results = fresh_folder(name);
    let folder = results.to_str().expect("a plain path");
    let arguments = [&["run", SCENARIO, "--results", folder], more].concat();
    let run = start(command(arguments));
    (run, results.join(SCENARIO).join("latest"))
}

/// Returns once every thread of worker a was seen standing still.
fn await_pause(run: &Path, case: &str) {
    await_row(&run.join(case).join("faults.jsonl"), |row| {
        row["fault"] == "pause" && row["stage"] == "observed"
    });
}

#[track_caller]
fn interrupted(run: Running) -> Ended {
    let ended = run.wait().expect_code(130);
    ended.expect_said(&["interrupted: healing and removing"])
}
