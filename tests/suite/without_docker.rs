//! A machine whose Docker does not answer: what needs it says so with 69 and a
//! remedy, and everything else works.

use crate::support::*;

#[test]
fn what_needs_docker_says_so_and_what_to_do() {
    let run = ["run", SCENARIO, "--runtime", "docker"];
    for arguments in [&run[..], &["images"], &["clean", "--images"]] {
        offline(arguments)
            .expect_code(69)
            .expect_short_error(2)
            .expect_said(&[
                "Docker does not answer at unix:///nonexistent.sock",
                "start the Docker Engine, or set DOCKER_HOST",
            ]);
    }
}

#[test]
fn a_run_without_docker_leaves_no_results() {
    let results = fresh_folder("no-docker");
    let folder = results.to_str().expect("a plain path");
    offline(&["run", SCENARIO, "--runtime", "docker", "--results", folder]).expect_code(69);
    let left = std::fs::read_dir(&results).expect("a folder").count();
    assert_eq!(left, 0);
}

#[test]
fn the_doctor_says_what_is_missing() {
    let mut doctor = command(["doctor"]);
    doctor.env("DOCKER_HOST", "unix:///nonexistent.sock");
    // Else runs could do without Docker.
    doctor.env("FENCEPOST_ETCD", "/nonexistent");
    start(doctor).wait().expect_code(69).expect_said(&[
        "MISSING",
        "Docker does not answer",
        "start the Docker Engine",
    ]);
}

#[test]
fn a_host_that_is_no_address_is_not_there_either() {
    for host in ["unix:///dev/null", "tcp://127.0.0.1:1", "nonsense"] {
        let mut command = command(["images"]);
        command.env("DOCKER_HOST", host);
        let ended = start(command).wait();
        ended.expect_code(69).expect_said(&[host]);
    }
}

#[test]
fn an_address_that_is_none_is_no_reason_to_do_without() {
    let mut run = command(["run", SCENARIO]);
    run.env("DOCKER_HOST", "nonsense").env_remove("CI");
    let ended = start(run).wait().expect_code(69);
    ended.expect_said(&["DOCKER_HOST is \"nonsense\"", "unset it"]);
}

/// Where Docker was used, something may be left in it.
#[test]
fn clean_does_without_docker_where_no_run_used_it() {
    let state = tempfile::tempdir().expect("a folder");
    let clean = |more: &[&str]| {
        let mut clean = command(["clean"]);
        clean.args(more).env("XDG_STATE_HOME", state.path());
        clean.env("DOCKER_HOST", "unix:///nonexistent.sock");
        start(clean).wait()
    };
    let said = ["Docker was not looked at: Docker does not answer"];
    clean(&[]).expect_code(0).expect_said(&said);
    let told = clean(&["--format", "json"]).expect_code(0).stdout;
    let told: serde_json::Value = serde_json::from_str(&told).expect("a document");
    assert_eq!(told["removed"], serde_json::json!([]));
    assert!(told["docker"].is_string(), "{told}");
    let journals = state.path().join("fencepost/faults");
    bounded_io::files::private_folder(&journals).expect("a folder");
    clean(&[]).expect_code(69);
    let told = clean(&["--format", "json"]).expect_code(69).stdout;
    let told: serde_json::Value = serde_json::from_str(&told).expect("one document");
    assert_eq!(told["exit_code"], 69);
    assert!(told["removed"].is_array(), "{told}");
}

#[test]
fn what_needs_no_docker_works() {
    offline(&["validate"])
        .expect_code(0)
        .expect_said(&["pause-gt-ttl.yml: ok"]);
    offline(&["list"])
        .expect_code(0)
        .expect_said(&[SCENARIO, "unfenced, fenced"]);
    offline(&["plan", SCENARIO])
        .expect_code(0)
        .expect_said(&["pause", "redis", "resource"]);
    offline(&["schema"])
        .expect_code(0)
        .expect_said(&["$schema"]);
    offline(&["--help"])
        .expect_code(0)
        .expect_said(&["Exit codes: 0 as expected"]);
    offline(&["--version"]).expect_code(0);
}
