//! `fencepost toxiproxy` as its users start it, and as a client that is not
//! ours sees it.

mod kit;

use crate::support::*;
use kit::{Server, python_with_toxiproxy};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};
use toxiproxy_server::{NewProxy, Stream, Toxic, ToxicKind};

const SOON: Duration = Duration::from_secs(10);

#[tokio::test]
async fn flags_have_one_dash_or_two() {
    for flags in [
        [
            "-host",
            "127.0.0.1",
            "-port",
            "0",
            "-seed",
            "7",
            "-proxy-metrics",
        ]
        .as_slice(),
        &[
            "--host=127.0.0.1",
            "-port=0",
            "--seed=7",
            "--proxy-metrics=true",
        ],
    ] {
        let server = Server::start(flags);
        assert!(server.base.starts_with("http://127.0.0.1:"));
        server.await_told("the seed is 7");
        assert_eq!(server.client().version().await.unwrap(), "2.13.0");
        assert_eq!(server.status_of("/metrics").await, 200);
    }
    for flag in ["-version", "--version"] {
        let ended = offline(&["toxiproxy", flag]).expect_code(0);
        assert_eq!(ended.stdout, "toxiproxy-server version 2.13.0\n");
    }
}

#[tokio::test]
async fn the_log_level_comes_from_the_environment() {
    let mut command = command(["toxiproxy", "-host", "127.0.0.1", "-port", "0"]);
    command.env("LOG_LEVEL", "error");
    let server = Server::run(command);
    server.client().version().await.unwrap();
    assert_eq!(server.told(), "");
    let mut wrong = crate::support::command(["toxiproxy"]);
    wrong.env("LOG_LEVEL", "loud");
    start(wrong).wait().expect_code(64).expect_said(&["loud"]);
}

#[tokio::test]
async fn a_token_in_the_environment_is_asked_for_and_its_lack_is_warned_of() {
    let mut command = command(["toxiproxy", "-host", "127.0.0.1", "-port", "0"]);
    command.env("TOXIPROXY_AUTH_TOKEN", "secret");
    let server = Server::run(command);
    let refused = server.client().version().await.unwrap_err();
    assert_eq!(refused.status(), Some(401));
    let client = server.client().with_auth_token("secret").expect("a header");
    assert_eq!(client.version().await.unwrap(), "2.13.0");
    assert!(!server.told().contains("secret"), "{}", server.told());
    let open = Server::start(&["-host", "0.0.0.0", "-port", "0"]);
    open.await_told("asks for no token; set TOXIPROXY_AUTH_TOKEN");
}

#[test]
fn what_cannot_be_is_told_before_anything_is_served() {
    offline(&["toxiproxy", "-hots", "x"]).expect_code(64);
    offline(&["toxiproxy", "-port", "70000"]).expect_code(64);
    offline(&["toxiproxy", "-seed", "x"]).expect_code(64);
    let missing = ["toxiproxy", "-config", "/nonexistent.json"];
    offline(&missing)
        .expect_code(64)
        .expect_said(&["cannot read the config /nonexistent.json"]);
    let folder = fresh_folder("toxiproxy-bad-config");
    let config = folder.join("config.json");
    std::fs::write(&config, "[{\"name\": 7}]").expect("written");
    let config = config.to_str().expect("a plain path");
    offline(&["toxiproxy", "-config", config])
        .expect_code(64)
        .expect_said(&[config, "it is an array of"]);
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    offline(&["toxiproxy", "-host", "127.0.0.1", "-port", &port])
        .expect_code(70)
        .expect_said(&["listen tcp 127.0.0.1:", "in use"]);
}

#[tokio::test]
async fn a_config_is_in_force_from_the_first_line_on() {
    let upstream = TcpListener::bind("127.0.0.1:0").expect("a port");
    let folder = fresh_folder("toxiproxy-config");
    let config = folder.join("config.json");
    let text = format!(
        r#"[{{"name":"p","listen":"127.0.0.1:0","upstream":"{}",
             "toxics":[{{"type":"bandwidth","stream":"upstream","attributes":{{"rate":0}}}}]}}]"#,
        upstream.local_addr().expect("an address")
    );
    std::fs::write(&config, text).expect("written");
    let config = config.to_str().expect("a plain path");
    let server = Server::start(&["-host", "127.0.0.1", "-port", "0", "-config", config]);
    let proxy = server.client().proxy("p").await.unwrap();
    let mut client = TcpStream::connect(&proxy.listen).expect("it listens");
    let (mut behind, _) = upstream.accept().expect("it is led on");
    client.write_all(b"held").expect("written");
    // The server has done something else since.
    server.client().proxy("p").await.unwrap();
    behind.set_nonblocking(true).expect("a socket");
    let mut text = [0; 4];
    behind.read_exact(&mut text).expect_err("nothing comes");
    behind.set_nonblocking(false).expect("a socket");
    server.client().reset().await.unwrap();
    behind.set_read_timeout(Some(SOON)).expect("a timeout");
    behind.read_exact(&mut text).expect("now it does");
    assert_eq!(&text, b"held");
}

#[tokio::test]
async fn an_end_asked_for_is_soon_and_closes_every_connection() {
    let server = Server::start(&["-host", "127.0.0.1", "-port", "0"]);
    let upstream = TcpListener::bind("127.0.0.1:0").expect("a port");
    let new = NewProxy {
        name: "p".into(),
        listen: "127.0.0.1:0".into(),
        upstream: upstream.local_addr().expect("an address").to_string(),
        enabled: true,
    };
    let proxy = server.client().create(&new).await.unwrap();
    let stall = Toxic::new(
        Stream::Downstream,
        ToxicKind::Bandwidth { rate_kb_per_s: 0 },
    );
    server.client().add_toxic("p", &stall).await.unwrap();
    let mut client = TcpStream::connect(&proxy.listen).expect("it listens");
    let (mut behind, _) = upstream.accept().expect("it is led on");
    behind.write_all(b"never arrives").expect("written");
    let start = Instant::now();
    assert_eq!(server.terminate(), Some(0));
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
    client.set_read_timeout(Some(SOON)).expect("a timeout");
    let mut rest = Vec::new();
    // Closed or reset: which of them depends on what was under way.
    let _ = client.read_to_end(&mut rest);
    assert_eq!(rest, b"");
    TcpStream::connect(&proxy.listen).expect_err("nobody listens");
}

#[test]
fn a_client_in_python_that_is_not_ours_gets_along_with_it() {
    let Some(python) = python_with_toxiproxy() else {
        return;
    };
    let server = Server::start(&["-host", "127.0.0.1", "-port", "0"]);
    let port = server.base.rsplit_once(':').expect("a port").1;
    let script = project().join("tests/suite/toxiproxy/client.py");
    let mut command = Command::new(python);
    command.arg(script).arg(port).env_remove("HTTP_PROXY");
    command.env("NO_PROXY", "*").env_remove("http_proxy");
    start(command)
        .wait()
        .expect_code(0)
        .expect_said(&["all well"]);
}
