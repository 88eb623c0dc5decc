//! A machine whose Docker does not answer: what needs it says so with 69 and a
//! remedy, and everything else works.

use crate::support::*;

#[test]
fn what_needs_docker_says_so_and_what_to_do() {
    let run = ["run", SCENARIO, "--runtime", "docker"];
    for arguments in [&run[..], &["images"], &["clean"]] {
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
    offline(&["doctor"]).expect_code(69).expect_said(&[
        "MISSING",
        "Docker does not answer",
        "start the Docker Engine",
    ]);
}

#[test]
fn a_host_that_is_no_address_is_not_there_either() {
    for host in ["unix:///dev/null", "tcp://127.0.0.1:1", "nonsense"] {
        let mut command = command(["clean"]);
        command.env("DOCKER_HOST", host);
        let ended = start(command).wait();
        ended.expect_code(69).expect_said(&[host]);
    }
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
