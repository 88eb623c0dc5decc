//! Whatever a topology says: nothing outside of a run's own folder is touched, and
//! no other machine can talk to its servers.

use super::*;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;

const BODY: &str = "\
topology: redis
lock: { backend: redis, ttl: 40s }
workers:
  a: { key: k, gate: before_write }
timeline:
  - { when: a.at_gate, do: { pause: a, for: 20s } }
cases:
  fenced: { fence: on, expect: { violations: 0 } }
";

/// The local addresses of all TCP sockets that these processes listen at, as the
/// kernel writes them.
fn listening(processes: &[u32]) -> Vec<String> {
    let files = processes.iter().flat_map(|pid| {
        let files = fs::read_dir(format!("/proc/{pid}/fd"));
        files.into_iter().flatten().flatten()
    });
    let sockets: Vec<String> = files
        .filter_map(|file| Some(fs::read_link(file.path()).ok()?.display().to_string()))
        .collect();
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(fs::read_to_string);
    let tables: String = tables.into_iter().flatten().collect();
    let rows = tables.lines().map(|line| line.split_whitespace().collect());
    let own = rows.filter(|row: &Vec<&str>| {
        row[3] == "0A" && sockets.contains(&format!("socket:[{}]", row[9]))
    });
    own.map(|row| row[1].to_owned()).collect()
}

#[test]
fn no_other_machine_reaches_a_server_that_is_not_told_where_to_listen() {
    let tried = Tried::new("unbound", BODY);
    tried
        .home
        .replace("compose/redis.yml", "--bind, \"0.0.0.0\", ", "");
    let run = start(tried.command());
    let faults = tried.case("fenced").join("faults.jsonl");
    await_row(&faults, |row| row["stage"] == "observed");
    let addresses = listening(&tried.local.processes());
    run.signal(Signal::SIGINT);
    run.wait().expect_code(130);
    // Redis, the resource, and the proxies of a: two, and their control.
    assert_eq!(addresses.len(), 5, "{addresses:?}");
    let is_loopback = |address: &String| address.starts_with("0100007F:");
    assert!(addresses.iter().all(is_loopback), "{addresses:?}");
}

/// A server in another group is somebody else, whoever has started it.
#[test]
fn a_server_is_ready_when_the_listener_at_its_port_is_its_own() {
    let tried = Tried::new("impostor", BODY);
    let server = tried.local.redis_server().display();
    let text =
        format!("case $1 in --version) exec {server} $1;; esac\nsetsid {server} \"$@\" | cat\n");
    let impostor = tried.local.script("impostor", &text);
    let mut command = tried.command();
    command.env("FENCEPOST_REDIS_SERVER", impostor);
    let ended = start(command).wait();
    for pid in tried.local.processes() {
        kill(Pid::from_raw(pid as i32), Signal::SIGKILL).expect("the impostor");
    }
    let says = "redis did not get ready: somebody else listens at its port, 127.0.0.1:";
    ended.expect_code(70).expect_said(&[says]);
}

#[test]
fn what_leads_out_of_a_node_s_folder_is_said_before_anything_starts() {
    for (name, word) in [("up", "/../../../victim"), ("beside", "../../victim")] {
        let tried = Tried::new(&format!("out-{name}"), BODY);
        let more = format!("--dir, \"{word}\", --bind");
        tried.home.replace("compose/redis.yml", "--bind", &more);
        let says = format!("cannot be done here: redis: `{word}` leads out of its own folder");
        tried.run().expect_code(2).expect_said(&[&says]);
        assert!(!tried.case("fenced").join("logs").join("redis.log").exists());
        assert_eq!(tried.local.left(), [""; 0]);
    }
}
