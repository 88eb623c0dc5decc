use crate::support::*;
use nix::sys::signal::Signal;
use serde_json::json;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// `contend` with few contenders at the Redis that tests share.
fn contend(results: &Path, more: &str) -> Running {
    let results = results.to_str().expect("a readable path");
    let redis = redis_address();
    let common = ["contend", "--redis", &redis, "--results", results];
    let more = more.split_whitespace();
    start(command(common.into_iter().chain(more)))
}

fn latest(results: &Path, command: &str) -> PathBuf {
    results.join(command).join("latest")
}

#[test]
fn a_load_is_measured_and_judged_and_can_be_judged_again() {
    let _turn = docker_shared();
    let results = fresh_folder("contend");
    let steps = "--contenders 2,5 --rate 20 --duration 1s --wait spin,queue";
    let ended = contend(&results, steps).wait().expect_code(0);
    ended.expect_said(&["contend: as expected (2 of 2 cases as expected)"]);
    let run = latest(&results, "contend");
    let result = json(&run.join("result.json"));
    for case in ["spin", "queue"] {
        assert_eq!(result["stable"]["cases"][case]["verdict"], "as_expected");
        let measured = &result["measurements"][case]["load"]["steps"];
        let contenders = [&measured[0]["contenders"], &measured[1]["contenders"]];
        assert_eq!(contenders, [&json!(2), &json!(5)], "{measured:#}");
        assert!(
            measured[1]["acquisitions"].as_u64() > Some(0),
            "{measured:#}"
        );
        let arrivals = rows(&run.join(case).join("arrivals.jsonl"));
        let counted = measured.as_array().into_iter().flatten();
        let counted: u64 = counted.filter_map(|step| step["arrivals"].as_u64()).sum();
        assert_eq!(arrivals.len() as u64, counted, "a row for each arrival");
        assert!(!run.join(case).join("resource").exists(), "its own is gone");
    }
    let again = offline(&["check", run.to_str().expect("a readable path")]);
    again
        .expect_code(0)
        .expect_said(&["the same as recorded in result.json"]);
    let scenario = run.join("scenario.yml");
    offline(&["validate", scenario.to_str().expect("a readable path")]).expect_code(0);
}

#[test]
fn a_resource_that_is_there_already_has_to_be_fresh() {
    let _turn = docker_shared();
    let results = fresh_folder("contend-resource");
    let nobody = contend(&results, "--resource http://127.0.0.1:1").wait();
    nobody
        .expect_code(69)
        .expect_said(&["--resource: http://127.0.0.1:1 does not answer"]);
    let wrong = contend(&results, "--resource ftp://x").wait();
    wrong.expect_code(64).expect_said(&["--resource: "]);
    let resource = Resource::start(&results);
    let load = format!("--contenders 2 --duration 1s --resource {}", resource.url);
    contend(&results, &load).wait().expect_code(0);
    let used = contend(&results, &load).wait().expect_code(64);
    used.expect_said(&["writes in its log already; start it with an empty --data"]);
}

/// `fencepost resource`, ended with the test.
struct Resource {
    url: String,
    child: Child,
}

impl Resource {
    fn start(folder: &Path) -> Resource {
        let data = folder.join("data");
        let data = data.to_str().expect("a readable path");
        Resource::run(command([
            "resource",
            "--listen",
            "127.0.0.1:0",
            "--data",
            data,
        ]))
    }

    fn run(mut command: Command) -> Resource {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("a process");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("piped");
        BufReader::new(stdout)
            .read_line(&mut line)
            .expect("its address");
        let address = line.strip_prefix("resource listening on ");
        let address = address.and_then(|rest| rest.split(',').next());
        let url = format!("http://{}", address.unwrap_or_else(|| panic!("{line:?}")));
        Resource { url, child }
    }
}

impl Drop for Resource {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_resource_takes_as_many_open_files_as_it_may_have() {
    let data = fresh_folder("few-files");
    let mut few = Command::new("sh");
    few.args(["-c", r#"ulimit -Sn 64 && exec "$0" "$@""#]);
    few.arg(env!("CARGO_BIN_EXE_fencepost"));
    few.args(["resource", "--listen", "127.0.0.1:0", "--data"]);
    few.arg(&data);
    let resource = Resource::run(few);
    let limits = format!("/proc/{}/limits", resource.child.id());
    let limits = fs::read_to_string(limits).expect("it runs");
    let files = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let files: Vec<&str> = files.expect("a limit").split_whitespace().collect();
    assert_ne!(files[3], "64", "{files:?}");
    assert_eq!(files[3], files[4], "the soft limit is the hard one");
}

/// What was measured until then is kept, and so is why there is no more.
#[test]
fn an_interrupt_ends_a_load_and_keeps_what_it_has() {
    let _turn = docker_shared();
    let results = fresh_folder("contend-interrupted");
    let running = contend(&results, "--contenders 3 --rate 20 --duration 60s");
    let case = latest(&results, "contend").join("redis");
    await_row(&case.join("history.jsonl"), |row| {
        row["event"] == "acquired"
    });
    running.signal(Signal::SIGINT);
    running.wait().expect_code(130);
    let result = json(&latest(&results, "contend").join("result.json"));
    assert_eq!(result["stable"]["unfinished"], json!(["redis"]));
    let notes = json(&case.join("case.json"));
    let gaps = notes["gaps"].to_string();
    assert!(gaps.contains("interrupted"), "{notes:#}");
    assert!(resources_of(&results).is_empty(), "its resource has ended");
}

#[test]
fn a_killed_load_takes_its_resource_along() {
    let _turn = docker_shared();
    let results = fresh_folder("contend-killed");
    let running = contend(&results, "--contenders 3 --rate 20 --duration 60s");
    let case = latest(&results, "contend").join("redis");
    await_row(&case.join("history.jsonl"), |row| {
        row["event"] == "acquired"
    });
    assert_eq!(resources_of(&results).len(), 1);
    running.signal(Signal::SIGKILL);
    assert_eq!(running.wait().code, None);
    let gone = || resources_of(&results).is_empty().then_some(());
    until("the end of the resource", gone);
    let run = latest(&results, "contend");
    let again = offline(&["check", run.to_str().expect("a readable path")]);
    again.expect_code(2).expect_said(&["the run ended before"]);
}

/// The processes that keep their data in a folder.
fn resources_of(folder: &Path) -> Vec<String> {
    let folder = folder.to_str().expect("a readable path");
    let processes = fs::read_dir("/proc").expect("Linux").flatten();
    let commands = processes.filter_map(|process| {
        let words = fs::read(process.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&words).replace('\0', " "))
    });
    let is_one = |command: &String| command.contains(" resource ") && command.contains(folder);
    commands.filter(is_one).collect()
}

#[test]
fn a_keyspace_is_as_expected_when_it_is_done_to_its_end() {
    let _turn = docker_shared();
    let results = fresh_folder("keyspace");
    let folder = results.to_str().expect("a readable path");
    let redis = own_redis();
    let given = ["keyspace", "--redis", &redis.address, "--results", folder];
    let small = ["--keys", "2k", "--ttl", "1s", "--scan"];
    fencepost(&[&given[..], &small].concat()).expect_code(0);
    let run = latest(&results, "keyspace");
    let result = json(&run.join("result.json"));
    let measured = &result["measurements"]["redis"]["load"]["keyspace"]["redis"];
    assert_eq!(measured["keys"], 2000, "{measured:#}");
    let again = offline(&["check", run.to_str().expect("a readable path")]);
    again
        .expect_code(0)
        .expect_said(&["the same as recorded in result.json"]);
}

/// What was measured until then is kept, and marked as what it is.
#[test]
fn a_server_without_memory_leaves_a_partial_result() {
    let _turn = docker_shared();
    let results = fresh_folder("keyspace-out-of-memory");
    let folder = results.to_str().expect("a readable path");
    let redis = own_redis();
    let client = redis::Client::open(format!("redis://{}", redis.address)).expect("an address");
    let mut connection = client.get_connection().expect("a connection");
    let mut limit = redis::cmd("CONFIG");
    limit.arg("SET").arg("maxmemory").arg("4mb");
    limit.exec(&mut connection).expect("a limit");
    let given = ["keyspace", "--redis", &redis.address, "--results", folder];
    let ended = fencepost(&[&given[..], &["--keys", "200k", "--ttl", "60s"]].concat());
    ended
        .expect_code(2)
        .expect_said(&["not certain: the load was cut short: "]);
    let result = json(&latest(&results, "keyspace").join("result.json"));
    let load = &result["measurements"]["redis"]["load"];
    assert!(load["partial"].is_string(), "{load:#}");
    let samples = load["keyspace"]["redis"]["samples"].as_array();
    assert!(
        samples.is_some_and(|samples| !samples.is_empty()),
        "{load:#}"
    );
}
