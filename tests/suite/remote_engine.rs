//! An engine that is not at the usual socket: one that is this machine's all the
//! same does everything, and with any other nothing is started.

use crate::support::*;
use nix::sched::{CloneFlags, unshare};
use std::io;
use std::os::unix::process::CommandExt;
use tokio::net::{TcpListener, UnixStream};
use tokio::runtime::Runtime;

/// The engine of this machine behind a port of loopback.
struct Relay {
    host: String,
    _runtime: Runtime,
}

impl Relay {
    fn start() -> Relay {
        let runtime = Runtime::new().expect("threads");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"));
        let listener = listener.expect("a free port");
        let address = listener.local_addr().expect("bound");
        // Ends with the runtime.
        runtime.spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut engine = UnixStream::connect(SOCKET).await?;
                    tokio::io::copy_bidirectional(&mut client, &mut engine).await
                });
            }
        });
        Relay {
            host: format!("tcp://{address}"),
            _runtime: runtime,
        }
    }
}

/// By somebody who may neither open the socket nor look into processes.
#[test]
fn a_scenario_with_a_skewed_clock_runs_over_tcp() {
    let _turn = docker_shared();
    let relay = Relay::start();
    let user = OrdinaryUser::without_docker();
    let run = ["run", "redlock-clock-jump", "--case", "fenced"];
    let mut run = user.command(run);
    run.env("DOCKER_HOST", &relay.host).env("CI", "true");
    let ended = start(run).wait().expect_code(0);
    assert_eq!(owned_by(ended.pid), [""; 0]);
    let result = user.path("results/redlock-clock-jump/latest/result.json");
    assert_eq!(json(&result)["environment"]["runtime"], "docker");
}

/// A network of its own stands for another machine: what the engine publishes on
/// its loopback is not to be found on ours.
#[test]
fn nothing_is_started_on_an_engine_whose_ports_are_out_of_reach() {
    let _turn = docker_shared();
    if !nix::unistd::geteuid().is_root() {
        skip("only root can make a network for a process");
        return;
    }
    let results = fresh_folder("out-of-reach");
    let folder = results.to_str().expect("a plain path");
    let mut run = command(["run", SCENARIO, "--results", folder]);
    let host = format!("unix://{SOCKET}");
    run.env("DOCKER_HOST", &host);
    let alone = || unshare(CloneFlags::CLONE_NEWNET).map_err(io::Error::from);
    // SAFETY: one system call, and nothing that a fork leaves locked.
    unsafe { run.pre_exec(alone) };
    let ended = start(run).wait().expect_code(69);
    let ended = ended.expect_said(&[
        &format!("cannot run anything on the Docker Engine at {host}"),
        "its ports are published on its own loopback",
        "run fencepost on the engine's own machine",
    ]);
    assert_eq!(owned_by(ended.pid), [""; 0]);
    assert!(
        !results.join(SCENARIO).join("latest").exists(),
        "nothing ran"
    );
}

#[test]
fn what_is_not_spoken_is_said_before_anything_is_tried() {
    let tls = "speaks TLS, which fencepost does not";
    for (host, verify, said) in [
        ("tcp://127.0.0.1:1", "1", tls),
        ("https://127.0.0.1:1", "", tls),
        ("ssh://me@example", "", "ssh me@example fencepost"),
    ] {
        let mut images = command(["images"]);
        images
            .env("DOCKER_HOST", host)
            .env("DOCKER_TLS_VERIFY", verify);
        let ended = start(images).wait().expect_code(69);
        ended.expect_said(&[host, said]).expect_short_error(2);
    }
}
