//! What goes wrong on a machine while a run is under way: one clear message
//! with the remedy, exit 70, everything removed.

use crate::support::*;
use std::net::TcpListener;
use std::process::Command;

const TOPOLOGY: &str = "compose/redis.yml";

#[test]
fn a_port_in_use_is_named_with_the_remedy() {
    let _turn = docker_shared();
    let holder = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = holder.local_addr().expect("bound").port();
    let home = Home::new();
    home.replace(
        TOPOLOGY,
        "127.0.0.1::6379",
        &format!("127.0.0.1:{port}:6379"),
    );
    let ended = run(&home, &[]).expect_code(70).expect_short_error(2);
    assert_eq!(owned_by(ended.pid), [""; 0]);
    ended.expect_said(&[
        &format!("port {port} on 127.0.0.1 is in use"),
        "write `127.0.0.1::6379` in the topology",
    ]);
}

#[test]
fn a_resource_that_dies_in_the_middle_is_named_and_its_log_is_kept() {
    let _turn = docker_shared();
    let results = fresh_folder("resource-dies");
    let folder = results.to_str().expect("a plain path");
    let arguments = ["run", SCENARIO, "--case", "fenced", "--results", folder];
    let run = start(command(arguments));
    let latest = results.join(SCENARIO).join("latest");
    await_row(&latest.join("fenced/faults.jsonl"), |row| {
        row["stage"] == "observed"
    });
    let ours = owned_by(run.pid);
    let resource = ours.iter().find(|name| name.ends_with("-resource"));
    docker_ok(&["kill", resource.expect("the resource runs")]);
    let ended = run.wait().expect_code(70);
    assert_eq!(owned_by(ended.pid), [""; 0]);
    ended.expect_said(&[
        "resource ended in the middle of the run",
        "resource listening",
    ]);
    assert!(latest.join("fenced/logs/resource.log").is_file());
    let result = json(&latest.join("result.json"));
    assert_eq!(result["stable"]["verdict"], "inconclusive");
    assert_eq!(result["stable"]["unfinished"][0], "fenced");
    let latest = latest.to_str().expect("a plain path");
    offline(&["check", latest])
        .expect_code(2)
        .expect_said(&["ended in the middle of the run"]);
}

#[test]
fn a_service_that_does_not_start_shows_its_last_lines() {
    let _turn = docker_shared();
    let home = Home::new();
    home.replace(
        TOPOLOGY,
        "[redis-server, --port, \"6379\"",
        "[redis-server, --nonsense, \"yes\"",
    );
    let ended = run(&home, &[]).expect_code(70);
    assert_eq!(owned_by(ended.pid), [""; 0]);
    ended.expect_said(&[
        "redis did not get ready",
        "its process ended",
        "    ",
        "nonsense",
    ]);
}

#[test]
fn a_command_that_is_not_in_the_image_is_named() {
    let _turn = docker_shared();
    let home = Home::new();
    home.replace(TOPOLOGY, "[redis-server, --port", "[no-such-server, --port");
    let ended = run(&home, &[]).expect_code(70);
    assert_eq!(owned_by(ended.pid), [""; 0]);
    ended.expect_said(&["could not start redis", "no-such-server"]);
}

/// Three pages hold the first files and not the rows of a run; sixteen hold
/// the first case and not the second.
#[test]
fn a_full_disk_is_named_with_the_remedy() {
    let _turn = docker_shared();
    if !nix::unistd::geteuid().is_root() {
        return skip("only root can mount a small disk");
    }
    for (size, arguments) in [("12k", "--case fenced"), ("64k", "--jobs 1")] {
        let disk = fresh_folder("small-disk");
        let disk = disk.to_str().expect("a plain path");
        let program = env!("CARGO_BIN_EXE_fencepost");
        // In a mount namespace of its own the disk cannot outlive the run.
        let script = format!(
            "mount -t tmpfs -o size={size} tmpfs {disk} \
             && exec {program} run {SCENARIO} {arguments} --results {disk}"
        );
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &script]);
        command.current_dir(project());
        let ended = start(command).wait().expect_code(70);
        assert_eq!(owned_by(ended.pid), [""; 0], "{size}");
        ended
            .expect_short_error(2)
            .expect_said(&[disk, "No space left", "--results"]);
    }
}

#[test]
fn a_results_folder_that_cannot_be_written_is_named() {
    let _turn = docker_shared();
    let home = Home::new();
    home.write("results", "a file in its place");
    let ended = run(&home, &[]).expect_code(70).expect_short_error(2);
    assert_eq!(owned_by(ended.pid), [""; 0]);
    ended.expect_said(&["results/pause-gt-ttl", "--results"]);
}

fn run(home: &Home, more: &[&str]) -> Ended {
    fencepost(
        &[
            &["--home", home.path(), "run", SCENARIO, "--case", "fenced"],
            more,
        ]
        .concat(),
    )
}
