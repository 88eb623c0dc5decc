//! The kits for workers: each speaks the worker protocol, in a container of its own.

use crate::support::*;
use std::fs;
use std::time::Duration;

/// For a check that makes an image first: a compiler is hundreds of megabytes of packages.
const WITH_IMAGE: Duration = Duration::from_secs(600);

/// Copies a built-in kit out, as a person would, and checks it in its container.
fn checked(language: &str) {
    let _turn = docker_shared();
    let here = tempfile::tempdir().expect("a temporary folder");
    let kit = format!("kits/{language}");
    let run = |arguments: &[&str]| {
        let mut command = command(arguments);
        command.current_dir(here.path());
        start(command).wait_within(WITH_IMAGE).expect_code(0)
    };
    run(&["eject", &kit]);
    let ended = run(&["worker-check", &format!("fencepost/{kit}")]).expect_cleaned();
    ended.expect_said(&["speaks the worker protocol", "ok           renews"]);
}

#[test]
fn the_kit_for_python_speaks_the_protocol() {
    checked("python");
}

#[test]
#[ignore = "builds a large image: just test-slow"]
fn the_kit_for_go_speaks_the_protocol() {
    checked("go");
}

#[test]
#[ignore = "builds a large image: just test-slow"]
fn the_kit_for_java_speaks_the_protocol() {
    checked("java");
}

#[test]
#[ignore = "builds a large image: just test-slow"]
fn the_kit_for_node_speaks_the_protocol() {
    checked("node");
}

#[test]
#[ignore = "builds a large image: just test-slow"]
fn the_kit_for_php_speaks_the_protocol() {
    checked("php");
}

#[test]
#[ignore = "builds a large image: just test-slow"]
fn the_kit_for_ruby_speaks_the_protocol() {
    checked("ruby");
}

#[test]
#[ignore = "builds a large image: just test-slow"]
fn the_kit_for_rust_speaks_the_protocol() {
    checked("rust");
}

#[test]
fn the_lock_in_etcd_speaks_the_protocol() {
    let local = local();
    let lock = project().join("kits/python/etcd_lock.py");
    let lock = lock.to_str().expect("a readable path");
    let command = local.command(["worker-check", "--backend", "etcd", "python3", lock]);
    let ended = start(command).wait().expect_code(0);
    ended.expect_said(&["speaks the worker protocol", "ok           renews"]);
}

#[test]
#[ignore = "builds a large image: just test-slow"]
fn the_lock_in_postgres_speaks_the_protocol() {
    let _turn = docker_shared();
    let here = tempfile::tempdir().expect("a temporary folder");
    let run = |arguments: &[&str]| {
        let mut command = command(arguments);
        command.current_dir(here.path());
        start(command).wait_within(WITH_IMAGE).expect_code(0)
    };
    let options = ["--language", "python", "--service", "postgres", "--no-run"];
    run(&[&["init"], &options[..]].concat());
    let ended = run(&[
        "worker-check",
        "--backend",
        "postgres-lease",
        "fencepost/my-lock",
    ]);
    ended.expect_said(&["speaks the worker protocol", "ok           renews"]);
}

/// The folder of a worker is all that its image is made from, so it has a copy.
#[test]
fn the_example_uses_the_kit_as_it_is() {
    let [kit, copy] = ["kits/python", "examples/redis-py-worker"]
        .map(|folder| fs::read(project().join(folder).join("fencepost_kit.py")).expect("a file"));
    assert!(kit == copy, "copy kits/python/fencepost_kit.py there again");
}
