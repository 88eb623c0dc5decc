//! Plain Compose can read and start the topologies too.

use crate::support::*;
use fencepost::cluster::Topology;
use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::Duration;

#[test]
fn plain_compose_starts_a_topology() {
    let _turn = docker_shared();
    let Some(compose) = Compose::find() else {
        return;
    };
    compose.ok(&["up", "-d"]);
    let redis = compose.ok(&["port", "redis", "6379"]);
    until("PONG", || {
        let answer = ask(&redis, "PING\r\n", 7);
        answer.filter(|answer| answer == "+PONG\r\n")
    });
    let resource = compose.ok(&["port", "resource", "8080"]);
    let request = format!("GET /healthz HTTP/1.1\r\nhost: {resource}\r\nconnection: close\r\n\r\n");
    let healthy = "HTTP/1.1 200";
    until("a healthy resource", || {
        let answer = ask(&resource, &request, healthy.len());
        answer.filter(|answer| answer == healthy)
    });
    for address in [redis, resource] {
        assert!(address.starts_with("127.0.0.1:"), "{address}");
    }
    compose.ok(&["down", "-v"]);
    let left = format!("label=com.docker.compose.project={}", compose.project);
    assert_eq!(docker_ok(&["ps", "-a", "-q", "--filter", &left]), "");
}

#[test]
fn plain_compose_finds_the_same_services_in_every_topology() {
    let Some(program) = program() else { return };
    let topologies = Topology::load_all([project().join("compose")]).unwrap();
    for (name, topology) in topologies {
        let file = format!("compose/{name}.yml");
        let arguments = ["-f", &file, "--profile", "workers", "config", "--services"];
        let theirs = said(call(program, &arguments));
        let theirs: BTreeSet<&str> = theirs.lines().collect();
        let ours: BTreeSet<&str> = topology.services.keys().map(|name| name.as_str()).collect();
        assert_eq!(ours, theirs, "{file}");
    }
}

/// The first bytes of an answer; None where nobody answers yet.
fn ask(address: &str, request: &str, bytes: usize) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = vec![0; bytes];
    stream.read_exact(&mut answer).ok()?;
    String::from_utf8(answer).ok()
}

/// `docker compose`, or docker-compose.
type Program = &'static [&'static str];

/// None, and a line that says so, where there is no Compose to test with.
fn program() -> Option<Program> {
    static FOUND: OnceLock<Option<Program>> = OnceLock::new();
    let programs: [Program; 2] = [&["docker", "compose"], &["docker-compose"]];
    let works = |program: &Program| call(program, &["version"]).is_ok_and(|o| o.status.success());
    let find = || programs.into_iter().find(works);
    let found = *FOUND.get_or_init(|| {
        find().or_else(|| {
            let may_install = std::env::var_os("CI").is_some() && nix::unistd::geteuid().is_root();
            if may_install {
                once("compose", Duration::from_secs(300), install);
            }
            find()
        })
    });
    if found.is_none() {
        skip("neither `docker compose` nor docker-compose is here");
    }
    found
}

fn call(program: Program, arguments: &[&str]) -> io::Result<Output> {
    Command::new(program[0])
        .args(&program[1..])
        .args(arguments)
        .current_dir(project())
        .output()
}

/// What a call printed; it has to succeed.
#[track_caller]
fn said(output: io::Result<Output>) -> String {
    let output = output.expect("it was here a moment ago");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A project of its own, taken down however the test ends.
struct Compose {
    program: Program,
    project: String,
}

impl Compose {
    fn find() -> Option<Compose> {
        Some(Compose {
            program: program()?,
            project: format!("fencepost-test-{}", std::process::id()),
        })
    }

    fn call(&self, arguments: &[&str]) -> io::Result<Output> {
        let project = ["-f", "compose/redis.yml", "-p", &self.project];
        call(self.program, &[&project, arguments].concat())
    }

    #[track_caller]
    fn ok(&self, arguments: &[&str]) -> String {
        said(self.call(arguments))
    }
}

impl Drop for Compose {
    fn drop(&mut self) {
        let _ = self.call(&["down", "-v"]);
    }
}

fn install() {
    for arguments in [
        &["update"][..],
        &["install", "-y", "--no-install-recommends", "docker-compose"],
    ] {
        let mut apt = Command::new("apt-get");
        let apt = apt.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        // Whether it worked is seen by whether the program is there.
        let _ = apt.output();
    }
}
