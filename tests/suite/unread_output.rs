//! Output that nobody reads, or that cannot be written.

use crate::support::*;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::File;
use std::process::{Command, Stdio};

#[test]
fn whoever_stops_reading_changes_no_exit_code() {
    let mut list = command(["list"]);
    let mut child = list.stdout(Stdio::piped()).spawn().expect("it starts");
    drop(child.stdout.take());
    let code = child.wait().expect("it ends").code();
    assert_eq!(code, Some(0));
}

#[test]
fn a_stdout_that_is_full_is_said_and_fails() {
    let full = File::options().write(true).open("/dev/full");
    let mut list = command(["list"]);
    let output = list
        .stdout(full.expect("/dev/full"))
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(70));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("cannot write to stdout"), "{said}");
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn an_interrupt_is_heard_also_where_nobody_hears_us() {
    let _turn = docker_shared();
    let results = fresh_folder("unread");
    let folder = results.to_str().expect("a plain path");
    let arguments = ["run", SCENARIO, "--case", "fenced", "--results", folder];
    let mut run: Command = command(arguments);
    let mut child = run.stderr(Stdio::piped()).spawn().expect("it starts");
    drop(child.stderr.take());
    let faults = results.join(SCENARIO).join("latest/fenced/faults.jsonl");
    await_row(&faults, |row| row["stage"] == "observed");
    let pid = i32::try_from(child.id()).expect("a pid");
    kill(Pid::from_raw(pid), Signal::SIGINT).expect("it runs");
    let code = child.wait().expect("it ends").code();
    assert_eq!(code, Some(130));
    assert_eq!(owned_by(child.id()), [""; 0]);
}
