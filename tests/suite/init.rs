//! `fencepost init`: from nothing to the first verdict on a lock of one's own.

use crate::support::*;
use std::fs;
use std::path::Path;

fn init(folder: &Path, options: &[&str]) -> Ended {
    let mut command = command([&["init"], options].concat());
    command.current_dir(folder);
    start(command).wait()
}

#[test]
fn init_ends_with_a_verdict() {
    let _turn = docker_shared();
    let here = tempfile::tempdir().expect("a temporary folder");
    init(here.path(), &["--language", "python", "--name", "ours"])
        .expect_code(0)
        .expect_cleaned()
        .expect_said(&[
            "ours: as expected (3 of 3 cases as expected)",
            "first verdict",
        ]);
    let own = here.path().join("fencepost");
    assert!(own.join("results/ours/latest/report.html").is_file());
    let about = fs::read_to_string(own.join("ours.md")).expect("a text");
    assert!(
        about.contains("`ours/redis_lock.py` is the lock"),
        "{about}"
    );
}

/// Every language has its files, and the scenario beside them is valid.
#[test]
fn init_writes_a_valid_scenario_for_each_language() {
    for language in ["python", "go", "java", "node", "php", "ruby", "rust"] {
        let here = tempfile::tempdir().expect("a temporary folder");
        init(here.path(), &["--language", language, "--no-run"]).expect_code(0);
        let mut command = command(["validate", "fencepost/scenarios/my-lock.yml"]);
        command.current_dir(here.path());
        start(command).wait().expect_code(0);
        let about = fs::read_to_string(here.path().join("fencepost/my-lock.md"));
        let about = about.expect("a text");
        let lock = about.split('`').nth(1).expect("the path of the lock");
        assert!(here.path().join("fencepost").join(lock).is_file(), "{lock}");
    }
}

/// The lock of each service, with what it needs in its image, and where a scenario finds it.
#[test]
fn init_writes_a_lock_for_each_service_in_python() {
    for (service, topology, backend) in [
        ("redis", "redis", "redis"),
        ("etcd", "etcd", "etcd"),
        ("postgres", "postgres", "postgres-lease"),
    ] {
        let here = tempfile::tempdir().expect("a temporary folder");
        let options = ["--language", "python", "--service", service, "--no-run"];
        init(here.path(), &options).expect_code(0);
        let own = here.path().join("fencepost");
        let text = |path: &str| fs::read_to_string(own.join(path)).expect(path);
        let scenario = text("scenarios/my-lock.yml");
        assert!(scenario.contains(&format!(
            "topology: {topology}\nlock: {{ backend: {backend},"
        )));
        let lock = format!("{service}_lock.py");
        let recipe = text("my-lock/Dockerfile");
        assert!(recipe.contains(&format!("/worker/{lock}")), "{recipe}");
        assert_eq!(recipe.contains("psycopg2"), service == "postgres");
        let locks = fs::read_dir(own.join("my-lock")).expect("a folder");
        let locks = locks.map(|file| file.expect("a file").file_name());
        let locks: Vec<_> = locks.filter(|name| *name != "fencepost_kit.py").collect();
        assert!(
            locks.len() == 2 && locks.contains(&lock.into()),
            "{locks:?}"
        );
    }
}

#[test]
fn init_overwrites_nothing() {
    let here = tempfile::tempdir().expect("a temporary folder");
    let scenario = here.path().join("fencepost/scenarios/my-lock.yml");
    fs::create_dir_all(scenario.parent().expect("a folder")).expect("a folder of our own");
    fs::write(&scenario, "mine").expect("a temporary file");
    let options = ["--language", "python", "--no-run"];
    init(here.path(), &options)
        .expect_code(64)
        .expect_said(&["my-lock.yml is there already; move it away first"]);
    assert_eq!(fs::read_to_string(&scenario).expect("a file"), "mine");
    assert!(!here.path().join("fencepost/my-lock").exists());
}

#[test]
fn init_says_what_is_wrong_with_its_input() {
    let here = tempfile::tempdir().expect("a temporary folder");
    for (options, said) in [
        (&["--no-run"][..], "give --language (python, go, java"),
        (&["--language", "cobol"], "invalid value 'cobol'"),
        (
            &["--language", "go", "--service", "etcd"],
            "cannot make a lock on etcd in go: its kit has one on redis alone",
        ),
        (
            &["--language", "go", "--name", "../x"],
            "cannot call a lock `../x`",
        ),
    ] {
        init(here.path(), options)
            .expect_code(64)
            .expect_said(&[said]);
    }
    assert!(!here.path().join("fencepost").exists());
    let checkout = init(&project(), &["--language", "go", "--no-run"]);
    checkout
        .expect_code(64)
        .expect_said(&["cannot init in a checkout of fencepost"]);
    // Nobody can make a folder there, root included.
    fs::write(here.path().join("fencepost"), "a file").expect("a temporary file");
    init(here.path(), &["--language", "go", "--no-run"])
        .expect_code(70)
        .expect_said(&["cannot write fencepost/my-lock/Dockerfile", "; make "]);
}
