//! Plain Compose can start the topologies too.

use crate::support::*;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Output};
use std::time::Duration;

#[test]
fn plain_compose_starts_a_topology() {
    let Some(_turn) = docker_alone() else { return };
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

/// The first bytes of an answer; None where nobody answers yet.
fn ask(address: &str, request: &str, bytes: usize) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = vec![0; bytes];
    stream.read_exact(&mut answer).ok()?;
    String::from_utf8(answer).ok()
}

/// A project of its own, taken down however the test ends.
struct Compose {
    program: Vec<&'static str>,
    project: String,
}

impl Compose {
    fn find() -> Option<Compose> {
        let programs = [vec!["docker", "compose"], vec!["docker-compose"]];
        let works = |program: &Vec<&str>| {
            let version = Command::new(program[0])
                .args(&program[1..])
                .arg("version")
                .output();
            version.is_ok_and(|output| output.status.success())
        };
        let find = || programs.iter().find(|program| works(program)).cloned();
        let found = find().or_else(|| {
            let may_install = std::env::var_os("CI").is_some() && nix::unistd::geteuid().is_root();
            if may_install {
                install();
            }
            find()
        });
        let Some(program) = found else {
            skip("neither `docker compose` nor docker-compose is here");
            return None;
        };
        Some(Compose {
            program,
            project: format!("fencepost-test-{}", std::process::id()),
        })
    }

    fn call(&self, arguments: &[&str]) -> Output {
        Command::new(self.program[0])
            .args(&self.program[1..])
            .args(["-f", "compose/redis.yml", "-p", &self.project])
            .args(arguments)
            .current_dir(project())
            .output()
            .expect("it was here a moment ago")
    }

    #[track_caller]
    fn ok(&self, arguments: &[&str]) -> String {
        let output = self.call(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {stderr}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

impl Drop for Compose {
    fn drop(&mut self) {
        self.call(&["down", "-v"]);
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
