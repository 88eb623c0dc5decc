//! Many cases at the same time, and many runs of each: every one is what it
//! would have been alone, and nothing is left behind.

use crate::support::*;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

/// Two workers after each other, and nothing goes wrong.
const CALM: &str = "\
workers:
  a: { key: k, rounds: 2 }
  b: { key: k, rounds: 2, start: a.done }
cases:
  unfenced: { fence: off, expect: { violations: 0, accepted_writes: 4 } }
  fenced: { fence: on, expect: { violations: 0, accepted_writes: 4 } }
";

/// Something that stands long enough to be interrupted.
const FROZEN: &str = "\
workers:
  a: { key: k, gate: before_write }
timeline:
  - { when: a.at_gate, do: { freeze: redis, for: 60s } }
cases:
  unfenced: { fence: off, expect: { violations: 0 } }
  fenced: { fence: on, expect: { violations: 0 } }
deadline: 2m
";

struct Many {
    home: Home,
    results: PathBuf,
}

impl Many {
    fn new(test: &str) -> Many {
        let home = Home::new();
        let results = fresh_folder(&format!("many-{test}"));
        Many { home, results }
    }

    fn scenario(&self, name: &str, topology: &str, body: &str) {
        let head = format!("name: {name}\nabout: A test.\ntopology: {topology}\n");
        let lock = "lock: { backend: redis, ttl: 30s }\n";
        self.home
            .write(&format!("scenarios/{name}.yml"), head + lock + body);
    }

    fn start(&self, arguments: &[&str]) -> Running {
        let results = self.results.to_str().expect("a plain path");
        let shared = ["--home", self.home.path(), "run", "--results", results];
        start(command([&shared[..], arguments].concat()))
    }

    fn latest(&self, scenario: &str) -> PathBuf {
        self.results.join(scenario).join("latest")
    }

    fn stable(&self, scenario: &str) -> Value {
        json(&self.latest(scenario).join("result.json"))["stable"].take()
    }
}

#[test]
fn cases_of_two_scenarios_run_at_the_same_time_and_each_is_right() {
    let _turn = docker_shared();
    let many = Many::new("two");
    many.scenario("calm", "redis", CALM);
    let run = many.start(&[SCENARIO, "calm", "--jobs", "4"]);
    let ended = run.wait().expect_code(0);
    assert_eq!(owned_by(ended.pid), [""; 0]);
    let ended = ended.expect_said(&[
        "pause-gt-ttl: as expected (2 of 2 cases as expected)",
        "calm: as expected (2 of 2 cases as expected)",
    ]);
    let lines = ended.stderr.lines();
    let lines = lines.skip_while(|line| *line != format!("{SCENARIO} unfenced …"));
    let begun: Vec<&str> = lines.take_while(|line| line.ends_with(" …")).collect();
    let expected = [SCENARIO, "calm"].map(|name| {
        let cases = ["unfenced", "fenced"];
        cases.map(|case| format!("{name} {case} …"))
    });
    assert_eq!(begun, expected.concat(), "all before the first one ends");

    let together = many.stable("calm");
    many.start(&["calm", "--jobs", "1"]).wait().expect_code(0);
    assert_eq!(many.stable("calm"), together);
    let paused = &many.stable(SCENARIO)["cases"];
    assert_eq!(paused["unfenced"]["counts"]["accepted_writers"], 2);
    assert_eq!(paused["fenced"]["counts"]["accepted_writers"], 1);
}

#[test]
fn a_run_that_is_repeated_is_told_in_one_line_a_case() {
    let _turn = docker_shared();
    let many = Many::new("repeated");
    many.scenario("calm", "redis", CALM);
    let run = many.start(&["calm", "--repeat", "3", "--jobs", "3"]);
    let ended = run.wait().expect_code(0);
    assert_eq!(
        ended.stdout,
        "calm fenced:   as expected 3 of 3 (95 %: 43.9..100 %)\n\
         calm unfenced: as expected 3 of 3 (95 %: 43.9..100 %)\n"
    );
    let runs = fs::read_dir(many.results.join("calm")).expect("a folder");
    let runs = runs.map(|entry| entry.expect("readable").path());
    let results: Vec<Value> = runs
        .filter(|path| !path.is_symlink())
        .map(|path| json(&path.join("result.json"))["stable"].take())
        .collect();
    assert_eq!(results.len(), 3);
    assert!(results.iter().all(|stable| *stable == results[0]));
}

#[test]
fn ctrl_c_with_two_cases_under_way_heals_and_removes_both() {
    let _turn = docker_shared();
    let many = Many::new("interrupted");
    many.scenario("frozen", "redis", FROZEN);
    many.scenario("calm", "redis", CALM);
    let run = many.start(&["frozen", "calm", "--jobs", "2"]);
    let cases = ["unfenced", "fenced"].map(|case| many.latest("frozen").join(case));
    for case in &cases {
        await_row(&faults(case), |row| row["stage"] == "observed");
    }
    run.signal(Signal::SIGINT);
    let ended = run.wait().expect_code(130);
    assert_eq!(owned_by(ended.pid), [""; 0]);
    for case in &cases {
        let rows = rows(&faults(case));
        assert_eq!(rows.last().expect("rows")["stage"], "healed", "{rows:#?}");
    }
    let unfinished = &many.stable("frozen")["unfinished"];
    assert_eq!(*unfinished, json!(["unfenced", "fenced"]));
    assert!(!many.latest("calm").exists(), "it never began");
}

#[test]
fn an_error_in_one_case_stops_the_others_and_is_what_is_said() {
    let _turn = docker_shared();
    let many = Many::new("error");
    let topology = fs::read_to_string(many.home.file("compose/redis.yml"));
    let broken = topology
        .expect("a topology")
        .replace("[redis-server, --port", "[no-such-server, --port");
    many.home.write("compose/broken.yml", broken);
    many.scenario("frozen", "redis", FROZEN);
    many.scenario("broken", "broken", CALM);
    let run = many.start(&["frozen", "broken", "--case", "fenced", "--jobs", "2"]);
    let ended = run.wait().expect_code(70);
    assert_eq!(owned_by(ended.pid), [""; 0]);
    ended.expect_said(&[
        "error: broken fenced: could not start redis",
        "no-such-server",
    ]);
    for scenario in ["frozen", "broken"] {
        assert_eq!(many.stable(scenario)["unfinished"], json!(["fenced"]));
    }
}

#[test]
fn cases_that_want_the_same_port_of_this_machine_take_turns() {
    let _turn = docker_shared();
    let many = Many::new("port");
    many.scenario("calm", "redis", CALM);
    let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = free.local_addr().expect("bound").port();
    drop(free);
    let (any, fixed) = ("127.0.0.1::6379", format!("127.0.0.1:{port}:6379"));
    many.home.replace("compose/redis.yml", any, &fixed);
    let run = many.start(&["calm", "--jobs", "2"]);
    run.wait().expect_code(0);
}

fn faults(case: &Path) -> PathBuf {
    case.join("faults.jsonl")
}
