//! Faults of attached servers: refused, allowed, and healed after a run that was killed.

use super::kit::{ComposeRedis, attached};
use crate::support::*;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::path::Path;

#[test]
fn a_fault_of_an_attached_server_has_to_be_allowed_by_name() {
    let redis = "topology={ attach: { redis: { compose: shop/redis } }";
    let validate = |more: &str, step: &str| {
        let (topology, timeline) = (
            format!("{redis}{more} }}"),
            format!(
                "timeline=[{{ when: a.at_gate, do: {step} }}, {{ when: b.write_accepted, do: {{ resume: a }} }}, {{ when: a.at_gate, do: {{ pause: a, longer_than: ttl }} }}]"
            ),
        );
        let plan = ["plan", SCENARIO, "--set", &topology, "--set", &timeline];
        offline(&plan)
    };
    validate("", "{ kill: redis, for: 1s }").expect_code(64).expect_said(&[
        "`redis` is attached, and `kill` affects everybody who uses it; if that is meant, write `allow_faults_on: [redis]`",
    ]);
    validate(", allow_faults_on: [redis]", "{ kill: redis, for: 1s }").expect_code(0);
    for never in [
        "restart-empty: redis",
        "disconnect: redis, for: 1s",
        "skew: redis, by: 1s",
    ] {
        let step = format!("{{ {never} }}");
        validate(", allow_faults_on: [redis]", &step).expect_code(64);
    }
    // The links to it are ours.
    validate("", "{ isolate: redis, for: 1s }").expect_code(0);
    validate("", "{ refuse: 'a -> redis', for: 1s }").expect_code(0);
}

/// Writes a scenario at a server of the user's, in which a step is taken while a holds the lock.
fn scenario(folder: &Path, redis: &ComposeRedis, step: &str) -> String {
    let project = &redis.project;
    let text = format!(
        "name: at-mine
about: A lock survives what happens to its server.
topology:
  attach: {{ redis: {{ compose: {project}/cache }} }}
  allow_faults_on: [redis]
  allow_settings_on: [redis]
lock: {{ backend: redis, ttl: 20s }}
workers:
  a: {{ key: k, gate: after_acquire }}
  b: {{ key: k, start: a.acquired }}
timeline: [{{ when: a.at_gate, do: {step} }}]
cases:
  only: {{ fence: on, expect: {{ violations: 0, accepted_writes: 2 }} }}
"
    );
    let path = folder.join("at-mine.yml");
    std::fs::write(&path, text).expect("a temporary file");
    path.to_str().expect("a plain path").to_owned()
}

#[test]
fn an_allowed_fault_ends_and_starts_the_container_and_nothing_of_it_is_lost() {
    let _turn = docker_shared();
    let redis = ComposeRedis::start("faulted");
    redis.said(&["SET", "user:1", "kept"]);
    for (step, kind) in [
        ("{ pause: redis, for: 1s }", "pause"),
        ("{ kill: redis, for: 1s }", "kill"),
        ("{ restart: redis }", "restart"),
    ] {
        let folder = fresh_folder(&format!("attached-{kind}"));
        let file = scenario(&folder, &redis, step);
        attached(&["run", &file], &folder).expect_code(0);
        let faults = rows(&folder.join("at-mine/latest/only/faults.jsonl"));
        let bitten = |row: &&Value| row["fault"] == kind && row["stage"] == "observed";
        assert_eq!(faults.iter().filter(bitten).count(), 1, "{faults:?}");
        assert_eq!(redis.state(), "running", "{kind}");
        assert_eq!(redis.said(&["KEYS", "*"]), "user:1", "{kind}");
    }
}

#[test]
fn what_a_killed_run_did_to_an_attached_server_is_undone_by_clean() {
    let _turn = docker_alone();
    let redis = ComposeRedis::start("killed");
    redis.said(&["SET", "user:1", "kept"]);
    for (step, kind, healed) in [
        (
            "{ pause: redis, for: 50s }",
            "pause",
            "continued redis of run",
        ),
        (
            "{ kill: redis, for: 50s }",
            "kill",
            "started redis again of run",
        ),
    ] {
        let folder = fresh_folder(&format!("attached-left-{kind}"));
        let file = scenario(&folder, &redis, step);
        let results = folder.to_str().expect("a plain path");
        let run = ["run", &file, "--yes", "--results", results];
        let run = start(command(run));
        let faults = folder.join("at-mine/latest/only/faults.jsonl");
        await_row(&faults, |row| {
            row["fault"] == kind && row["stage"] == "observed"
        });
        run.signal(Signal::SIGKILL);
        assert_eq!(run.wait().code, None);
        let cleaned = fencepost(&["clean"]).expect_cleaned();
        cleaned.expect_said(&[
            healed,
            "removed the keys with fencepost-",
            "set the setting of the Compose service",
        ]);
        assert_eq!(redis.said(&["KEYS", "*"]), "user:1", "{kind}");
        let setting = redis.said(&["CONFIG", "GET", "notify-keyspace-events"]);
        assert_eq!(setting, "notify-keyspace-events", "{kind}");
    }
}
