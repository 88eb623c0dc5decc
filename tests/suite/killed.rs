//! Runs that were killed with -9 cannot clean up. The next run and `clean` do
//! it for them, and touch nothing else.

use crate::support::*;
use fencepost::cluster::Owner;
use nix::sys::signal::Signal;

#[test]
fn the_next_run_removes_what_a_killed_one_left() {
    let _turn = docker_alone();
    let (dead, left) = killed_run("killed-then-run");
    let others = Others::new("run");
    let results = fresh_folder("after-killed");
    let results = results.to_str().expect("a plain path");
    let next = fencepost(&["run", SCENARIO, "--case", "fenced", "--results", results]);
    let next = next.expect_code(0);
    for name in &left {
        let said = format!("removed {name}, left behind by a run that was killed");
        assert!(next.stderr.contains(&said), "{next}");
    }
    assert_eq!(owned_by(dead), [""; 0]);
    assert_eq!(owned_by(next.pid), [""; 0]);
    others.survived();
}

#[test]
fn clean_removes_what_a_killed_run_left() {
    let _turn = docker_alone();
    let (dead, left) = killed_run("killed-then-clean");
    let others = Others::new("clean");
    let clean = fencepost(&["clean"]).expect_cleaned();
    for name in &left {
        assert!(
            clean.stdout.contains(&format!("removed {name}\n")),
            "{clean}"
        );
    }
    assert_eq!(owned_by(dead), [""; 0]);
    others.survived();
}

#[test]
fn clean_and_sweep_leave_a_run_that_lives_alone() {
    let _turn = docker_shared();
    let results = fresh_folder("alive");
    let folder = results.to_str().expect("a plain path");
    let run = ["run", SCENARIO, "--case", "fenced", "--results", folder];
    // So long that it cannot have come to its end by itself.
    let alive = start(command(run.into_iter().chain(["--set", "lock.ttl=40s"])));
    let faults = results.join(SCENARIO).join("latest/fenced/faults.jsonl");
    await_row(&faults, |row| row["stage"] == "observed");
    let before = owned_by(alive.pid);
    fencepost(&["clean"]).expect_cleaned();
    assert_eq!(owned_by(alive.pid), before);
    alive.signal(Signal::SIGINT);
    let ended = alive.wait().expect_code(130);
    assert_eq!(owned_by(ended.pid), [""; 0]);
}

#[test]
fn what_was_kept_on_purpose_stays_until_clean() {
    let _turn = docker_alone();
    let results = fresh_folder("kept");
    let folder = results.to_str().expect("a plain path");
    let run = ["run", SCENARIO, "--case", "fenced", "--results", folder];
    let kept = fencepost(&[&run[..], &["--keep"]].concat()).expect_code(0);
    let kept = kept.expect_said(&["`fencepost clean` removes them"]);
    assert_eq!(owned_by(kept.pid).len(), 7, "six containers and a network");
    // A run sweeps before it looks at anything else.
    let nowhere = ["run", SCENARIO, "--results", "/dev/null/x"];
    fencepost(&nowhere).expect_code(70);
    assert_eq!(owned_by(kept.pid).len(), 7);
    fencepost(&["clean"]).expect_cleaned();
    assert_eq!(owned_by(kept.pid), [""; 0]);
    fencepost(&["clean"]).expect_cleaned();
}

/// Kills a run while its worker is frozen; returns its id and what it left.
fn killed_run(name: &str) -> (u32, Vec<String>) {
    let results = fresh_folder(name);
    let folder = results.to_str().expect("a plain path");
    let run = start(command(["run", SCENARIO, "--results", folder]));
    let case = results.join(SCENARIO).join("latest/unfenced");
    await_row(&case.join("faults.jsonl"), |row| row["stage"] == "observed");
    run.signal(Signal::SIGKILL);
    let ended = run.wait();
    assert_eq!(ended.code, None, "{ended}");
    let left = owned_by(ended.pid);
    for node in ["-redis", "-resource"] {
        assert!(left.iter().any(|name| name.ends_with(node)), "{left:?}");
    }
    assert!(
        !rows(&case.join("history.jsonl")).is_empty(),
        "evidence is kept"
    );
    (ended.pid, left)
}

/// Containers of the same image that are not for us to remove: the tests' own
/// Redis, without a label, and one of an owner that lives.
struct Others {
    of_this_process: String,
}

impl Others {
    fn new(name: &str) -> Others {
        redis_container();
        let run = format!("test-alive-{name}-{}", std::process::id());
        let of_this_process = format!("fencepost-{run}-a");
        let owner = format!("--label=fencepost.owner={}", Owner::current().to_label());
        let (run, node) = (
            format!("--label=fencepost.run={run}"),
            "--label=fencepost.node=a",
        );
        let create = ["create", "--name", &of_this_process, &owner, &run, node];
        docker_ok(&[&create[..], &["fencepost/redis:7.0", "true"]].concat());
        Others { of_this_process }
    }

    #[track_caller]
    fn survived(&self) {
        for name in [&self.of_this_process, redis_container()] {
            docker_ok(&["inspect", name]);
        }
        let running = ["inspect", "-f", "{{.State.Running}}", redis_container()];
        assert_eq!(docker_ok(&running), "true");
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        docker(&["rm", "-f", &self.of_this_process]);
    }
}
