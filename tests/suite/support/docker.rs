//! Docker as a bystander sees it: through its command line.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant, SystemTime};

const EVENT_DEADLINE: Duration = Duration::from_secs(60);

pub fn docker(arguments: &[&str]) -> Output {
    Command::new("docker")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the docker command line is here")
}

/// Returns the output of a command, which must succeed.
#[track_caller]
pub fn docker_ok(arguments: &[&str]) -> String {
    let output = docker(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "docker {arguments:?}: {stderr}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Returns the containers and networks whose owner is the process with this id.
pub fn owned_by(pid: u32) -> Vec<String> {
    let label = "label=fencepost.owner";
    let containers = r#"{{.Names}} {{.Label "fencepost.owner"}}"#;
    let networks = r#"{{.Name}} {{.Label "fencepost.owner"}}"#;
    let listed = [
        docker_ok(&["ps", "-a", "--filter", label, "--format", containers]),
        docker_ok(&["network", "ls", "--filter", label, "--format", networks]),
    ]
    .join("\n");
    let ours = listed.lines().filter_map(|line| line.split_once(' '));
    ours.filter(|(_, owner)| owner_pid(owner) == Some(pid))
        .map(|(name, _)| name.to_owned())
        .filter(|name| !is_stuck(name))
        .collect()
}

/// Returns whether the engine has miscounted a network, so that nobody can remove it.
fn is_stuck(name: &str) -> bool {
    let inspected = docker(&[
        "network",
        "inspect",
        name,
        "--format",
        "{{len .Containers}}",
    ]);
    let removed = || docker(&["network", "rm", name]);
    inspected.stdout.starts_with(b"0")
        && String::from_utf8_lossy(&removed().stderr).contains("has active endpoints")
}

/// Returns the process that a `fencepost.owner` label names.
pub fn owner_pid(label: &str) -> Option<u32> {
    label.split('/').nth(3)?.parse().ok()
}

/// The engine's own report of what happens, from now on.
pub struct Events {
    child: Child,
    lines: Receiver<Value>,
}

impl Events {
    pub fn watch() -> Events {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.expect("after 1970");
        let since = format!("{}.{:09}", now.as_secs(), now.subsec_nanos());
        let mut child = Command::new("docker")
            .args(["events", "--since", &since, "--format", "{{json .}}"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the docker command line is here");
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let (send, lines) = channel();
        // The thread ends with the child's output.
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let event = serde_json::from_str(&line).expect("an event is JSON");
                if send.send(event).is_err() {
                    return;
                }
            }
        });
        Events { child, lines }
    }

    /// Returns at the first event of this kind on a container of that process.
    pub fn await_container(&self, action: &str, pid: u32) {
        let until = Instant::now() + EVENT_DEADLINE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let event = self.lines.recv_timeout(left);
            let event = event.unwrap_or_else(|_| panic!("no container saw {action}"));
            let owner = event["Actor"]["Attributes"]["fencepost.owner"].as_str();
            if event["Type"] == "container"
                && event["Action"] == action
                && owner.and_then(owner_pid) == Some(pid)
            {
                return;
            }
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
