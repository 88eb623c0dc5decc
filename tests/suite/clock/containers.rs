//! A container's first process, by the container's name: from the host and
//! from a helper container.

use super::kit::*;
use crate::support::{command, docker_ok, docker_shared, owned_by, start};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use vdso_clock::ClockState;

/// Its first process tells the time, by two functions of its vDSO, and ends
/// with its stdin.
struct TellTime {
    name: String,
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl TellTime {
    fn start(flags: &[&str]) -> TellTime {
        let name = format!("test-clock-{}-{}", std::process::id(), fastrand::u32(..));
        let tell = "while read -r _; do echo ${EPOCHREALTIME/./} $EPOCHSECONDS; done";
        let mut child = Command::new("docker")
            .args(["run", "--rm", "-i", "--network", "none", "--name", &name])
            .args(flags)
            .args(["fencepost/redis:7.0", "bash", "-c", tell])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the docker command line is here");
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let mut container = TellTime {
            name,
            child,
            stdin,
            stdout,
        };
        container.expect_ahead(0);
        container
    }

    #[track_caller]
    fn expect_ahead(&mut self, seconds: i64) {
        let stdin = self.stdin.as_mut().expect("not over yet");
        writeln!(stdin).expect("it runs");
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("it runs");
        let times = line.split_whitespace().map(|n| n.parse().expect("a time"));
        let times: Vec<i64> = times.collect();
        let now = host_ms();
        assert_near("gettimeofday", times[0] / 1_000 - now, seconds * 1_000);
        let whole = (times[1] - now / 1_000 - seconds).abs();
        assert!(
            whole <= 3,
            "time() is {} s, not {seconds} s",
            times[1] - now / 1_000
        );
    }
}

impl Drop for TellTime {
    fn drop(&mut self) {
        self.stdin.take();
        let _ = self.child.wait();
    }
}

fn clock(arguments: &[&str]) -> ClockState {
    let ended = start(command(
        [&["clock"], arguments, &["--format", "json"]].concat(),
    ))
    .wait();
    let ended = ended.expect_code(0);
    assert!(owned_by(ended.pid).is_empty(), "a helper is left");
    serde_json::from_str(&ended.stdout).expect("JSON")
}

#[test]
fn the_host_and_a_helper_container_do_the_same() {
    let _turn = docker_shared();
    let host = HostClock::look();
    let mut container = TellTime::start(&[]);
    let name = &container.name.clone();
    let id = docker_ok(&["inspect", "-f", "{{.Id}}", name]);

    clock(&["set", name, "--realtime", "+15s"]);
    container.expect_ahead(15);
    let state = clock(&["show", name, "--helper"]);
    assert_eq!(state.realtime.offset_ns, 15 * SECOND_NS);
    clock(&["set", &id[..12], "--realtime", "-60s", "--helper"]);
    container.expect_ahead(-60);
    assert_eq!(clock(&["show", name]).realtime.offset_ns, -60 * SECOND_NS);
    assert!(clock(&["undo", name, "--helper"]).is_untouched());
    container.expect_ahead(0);
    host.assert_unchanged();
}

#[test]
fn a_container_without_any_privilege_is_reached_by_a_helper() {
    let _turn = docker_shared();
    let mut container = TellTime::start(&[
        "--user=65534",
        "--cap-drop=ALL",
        "--security-opt=no-new-privileges",
    ]);
    let name = &container.name.clone();
    clock(&["set", name, "--realtime", "+15s", "--helper"]);
    container.expect_ahead(15);
    clock(&["undo", name, "--helper"]);
    container.expect_ahead(0);
}

#[test]
fn a_helper_says_why_it_could_not() {
    let _turn = docker_shared();
    let container = TellTime::start(&[]);
    let refused = ["clock", "set", &container.name, "--helper"];
    let refused = [&refused[..], &["--monotonic", "-99999999s"]].concat();
    start(command(refused))
        .wait()
        .expect_code(64)
        .expect_said(&["in a helper container beside", "out of range"]);
    start(command(["clock", "show", "no-such-container"]))
        .wait()
        .expect_code(69)
        .expect_said(&["no-such-container", "docker ps"]);
}
