//! `up` and `down`: a topology that stands until somebody takes it down.

use crate::support::*;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);

/// A home with a topology like redis, under a name that no other test plays with; it is
/// down in the end, whatever becomes of the test.
struct Played {
    home: Home,
    topology: &'static str,
}

impl Played {
    fn new(topology: &'static str) -> Played {
        let home = Home::new();
        let compose = home.file("compose");
        let copied = std::fs::copy(
            compose.join("redis.yml"),
            compose.join(format!("{topology}.yml")),
        );
        copied.expect("a copy");
        Played { home, topology }
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        fencepost(&[&["--home", self.home.path()], arguments].concat())
    }

    fn up(&self) -> Value {
        let ended = self
            .run(&["up", self.topology, "--format", "json"])
            .expect_code(0);
        serde_json::from_str(&ended.stdout).expect("one document")
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        let _ = self.run(&["down", self.topology]);
    }
}

fn address(standing: &Value, service: &str) -> String {
    let services = standing["services"].as_array().expect("a list");
    let mut services = services.iter();
    let service = services.find(|one| one["name"] == service);
    let address = service.expect("it stands")["address"].as_str();
    address.expect("an address").to_owned()
}

fn asked(address: &str, question: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("somebody listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a deadline");
    stream.write_all(question.as_bytes()).expect("it is read");
    let mut answer = vec![0; 4096];
    let length = stream.read(&mut answer).expect("an answer");
    String::from_utf8_lossy(&answer[..length]).into_owned()
}

#[test]
fn a_topology_stands_until_it_is_taken_down_and_runs_leave_it_alone() {
    let _turn = docker_alone();
    const TOPOLOGY: &str = "redis-of-a-test";
    let played = Played::new(TOPOLOGY);
    let standing = played.up();
    assert_eq!(standing["was_up"], false);
    assert_eq!(standing["network"], format!("fencepost-up-{TOPOLOGY}"));
    let (redis, resource) = (address(&standing, "redis"), address(&standing, "resource"));
    for address in [&redis, &resource] {
        assert!(address.starts_with("127.0.0.1:"), "{address}");
    }
    assert_eq!(asked(&redis, "PING\r\n"), "+PONG\r\n");
    let metrics = asked(&resource, "GET /metrics HTTP/1.0\r\n\r\n");
    assert!(metrics.starts_with("HTTP/1.0 200"), "{metrics}");

    // A second one finds it, and starts nothing.
    let again = played.up();
    assert_eq!(again["was_up"], true);
    assert_eq!(address(&again, "redis"), redis);
    let said = played.run(&["up", TOPOLOGY]).expect_code(0);
    let said = said.expect_said(&["was up already", "fencepost contend --redis"]);
    assert!(said.stdout.contains(&redis), "{said}");

    // A run sweeps what the dead left behind, and not this.
    let results = fresh_folder("beside-up");
    let results = results.to_str().expect("a plain path");
    let run = ["run", SCENARIO, "--case", "fenced", "--results", results];
    fencepost(&run).expect_code(0);
    assert_eq!(asked(&redis, "PING\r\n"), "+PONG\r\n");

    // Whoever else is on its network is not ours to remove, and is said to be there.
    let network = format!("fencepost-up-{TOPOLOGY}");
    let image = docker_ok(&["inspect", "-f", "{{.Image}}", &format!("{network}-redis")]);
    let guest = [
        "run",
        "-d",
        "--rm",
        "--network",
        &network,
        image.trim(),
        "sleep",
        "600",
    ];
    let guest = docker_ok(&guest);
    played
        .run(&["down", TOPOLOGY])
        .expect_code(70)
        .expect_said(&[
            "other containers are still on the network",
            "fencepost down",
        ]);
    docker_ok(&["rm", "-f", guest.trim()]);
    fencepost(&["down", TOPOLOGY]).expect_code(0);
    played.up();

    // One that lost a service is not taken for whole.
    docker_ok(&["kill", &format!("fencepost-up-{TOPOLOGY}-resource")]);
    let half = played.run(&["up", TOPOLOGY]).expect_code(69);
    half.expect_said(&["resource does not run", "fencepost down redis-of-a-test"]);

    let down = played.run(&["down", TOPOLOGY]).expect_code(0);
    down.expect_said(&["redis-of-a-test is down"]);
    let left = format!("label=fencepost.run=up-{TOPOLOGY}");
    assert_eq!(docker_ok(&["ps", "-a", "-q", "--filter", &left]), "");
    assert_eq!(docker_ok(&["network", "ls", "-q", "--filter", &left]), "");
    let down = played.run(&["down", TOPOLOGY]).expect_code(0);
    down.expect_said(&["redis-of-a-test was not up"]);
}

#[test]
fn an_interrupt_in_the_middle_leaves_nothing_up() {
    let _turn = docker_alone();
    const TOPOLOGY: &str = "redis-never-ready";
    let played = Played::new(TOPOLOGY);
    // One that is never ready: it cannot be up before somebody interrupts.
    let file = format!("compose/{TOPOLOGY}.yml");
    let text = std::fs::read_to_string(played.home.file(&file)).expect("a topology");
    let words = "Ready to accept connections";
    assert!(text.contains(words), "{text}");
    played
        .home
        .write(&file, text.replace(words, "This is never said"));
    let up = start(command(["--home", played.home.path(), "up", TOPOLOGY]));
    up.await_said(&format!("starting {TOPOLOGY} …"));
    up.signal(Signal::SIGINT);
    let ended = up.wait().expect_code(130);
    assert_eq!(owned_by(ended.pid), [""; 0]);
    let down = played.run(&["down", TOPOLOGY]).expect_code(0);
    down.expect_said(&["was not up"]);
}

#[test]
fn a_topology_that_there_is_not_is_refused_with_the_nearest() {
    offline(&["up", "rediss"])
        .expect_code(64)
        .expect_said(&["there is no topology `rediss`", "redis"]);
}
