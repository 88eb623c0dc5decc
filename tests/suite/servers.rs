//! The servers of the tests can be stopped, started, frozen and thawed one by
//! one, and end with the test process.

use crate::support::*;
use etcd_client::{Client, ConnectOptions, Error};
use redis::Commands;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Nobody who answers at all takes this long.
const LONG: Duration = Duration::from_secs(10);
/// For one attempt of several.
const SHORT: Duration = Duration::from_secs(1);

#[test]
fn a_stopped_redis_comes_back_where_it_was() {
    let _turn = docker_shared();
    for (server, kept) in [
        (own_durable_redis(), Some("kept".to_owned())),
        (own_redis(), None),
    ] {
        let () = redis(&server).set("key", "kept").unwrap();
        server.stop();
        let refused = TcpStream::connect(&server.address).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        server.start();
        let found: Option<String> = redis(&server).get("key").unwrap();
        assert_eq!(found, kept, "{}", server.container);
    }
}

#[tokio::test]
async fn an_etcd_of_its_own_keeps_its_data_over_a_stop() {
    let _turn = docker_shared();
    let server = own_etcd();
    let connect = || etcd_client::Client::connect([&server.address], None);
    let mut etcd = connect().await.unwrap();
    etcd.put("key", "kept", None).await.unwrap();
    server.stop();
    server.start();
    let found = connect().await.unwrap().get("key", None).await.unwrap();
    assert_eq!(found.kvs()[0].value(), b"kept");
}

#[test]
fn a_frozen_redis_keeps_its_connections_and_answers_when_thawed() {
    let _turn = docker_shared();
    let server = own_redis();
    let mut connection = TcpStream::connect(&server.address).unwrap();
    server.freeze();
    connection.write_all(b"PING\r\n").unwrap();
    assert!(server.stands_still(), "every thread of it");
    connection.set_nonblocking(true).unwrap();
    let mut answer = [0; 7];
    let silence = connection.read(&mut answer).unwrap_err();
    assert_eq!(silence.kind(), ErrorKind::WouldBlock);
    server.thaw();
    assert!(!server.stands_still());
    connection.set_nonblocking(false).unwrap();
    connection.set_read_timeout(Some(LONG)).unwrap();
    connection.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"+PONG\r\n");
    // Killed while frozen, it is as dead as any other.
    server.freeze();
    server.stop();
    server.start();
    let () = redis(&server).ping().unwrap();
}

#[test]
fn a_server_of_ones_own_is_gone_when_dropped() {
    let _turn = docker_shared();
    let server = own_redis();
    server.freeze();
    let name = format!("name={}", server.container);
    drop(server);
    assert_eq!(docker_ok(&["ps", "-a", "-q", "--filter", &name]), "");
}

#[test]
fn one_of_five_can_be_down_and_the_next_test_finds_all_of_them() {
    {
        let _turn = docker_alone();
        let nodes = redlock_servers();
        let addresses: BTreeSet<&str> = nodes.iter().map(|node| node.address.as_str()).collect();
        assert_eq!(addresses.len(), 5);
        for node in nodes {
            let () = redis(node).incr("kit", 1).unwrap();
        }
        nodes[1].freeze();
        nodes[4].stop();
        for node in [&nodes[0], &nodes[2], &nodes[3]] {
            let () = redis(node).ping().unwrap();
        }
    }
    let _turn = docker_alone();
    for node in redlock_servers() {
        let count: u32 = redis(node).get("kit").unwrap();
        assert_eq!(count, 1, "{}", node.container);
    }
}

#[tokio::test]
async fn etcd_goes_on_without_one_member_and_remembers_without_any() {
    let _turn = docker_alone();
    let [one, two, three] = etcd_servers() else {
        panic!("three members")
    };
    put(one, "kit/1", "a").await;
    one.stop();
    let refused = TcpStream::connect(&one.address).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    put(two, "kit/2", "b").await;
    one.start();
    for (key, value) in [("kit/1", "a"), ("kit/2", "b")] {
        assert_eq!(value_of(one, key).await, value);
    }

    three.freeze();
    assert!(three.stands_still(), "every thread of it");
    assert_eq!(value_of(two, "kit/1").await, "a");
    three.thaw();
    assert_eq!(value_of(three, "kit/2").await, "b");

    for member in [one, two, three] {
        member.stop();
    }
    start_together([one, two, three]);
    assert_eq!(value_of(three, "kit/1").await, "a");
}

#[test]
fn servers_end_with_a_process_that_is_killed() {
    let _turn = docker_shared();
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture"])
        .arg("servers::a_process_to_be_killed")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let named = lines.find_map(|line| Some(line.ok()?.strip_prefix("sits with ")?.to_owned()));
    let container = named.expect("a process with a server");
    docker_ok(&["inspect", &container]);
    process.kill().unwrap();
    process.wait().unwrap();
    until("the end of its server", || {
        let gone = !docker(&["inspect", &container]).status.success();
        gone.then_some(())
    });
}

#[test]
#[ignore = "the child of servers_end_with_a_process_that_is_killed"]
fn a_process_to_be_killed() {
    let server = own_redis();
    println!("\nsits with {}", server.container);
    // Until it is killed, or its parent is.
    let _ = std::io::stdin().read(&mut [0]);
}

fn redis(server: &Server) -> redis::Connection {
    let client = redis::Client::open(format!("redis://{}", server.address)).unwrap();
    client.get_connection_with_timeout(LONG).unwrap()
}

async fn etcd(server: &Server) -> Client {
    let options = ConnectOptions::new().with_timeout(LONG);
    Client::connect([&server.address], Some(options))
        .await
        .unwrap()
}

async fn put(server: &Server, key: &str, value: &str) {
    answered(server, async |mut client| {
        client.put(key, value, None).await
    })
    .await;
}

/// Through this member, and of the whole cluster: etcd asks its leader.
async fn value_of(server: &Server, key: &str) -> String {
    let found = answered(server, async |mut client| client.get(key, None).await).await;
    let found = found.kvs().first().map(|kv| kv.value_str().unwrap());
    found.unwrap_or_default().to_owned()
}

/// Asks again: a request that meets a change of leaders fails or gets lost.
async fn answered<T>(server: &Server, ask: impl AsyncFn(Client) -> Result<T, Error>) -> T {
    let client = etcd(server).await;
    let answer = async {
        loop {
            let asked = tokio::time::timeout(SHORT, ask(client.clone()));
            if let Ok(Ok(answer)) = asked.await {
                return answer;
            }
        }
    };
    let answer = tokio::time::timeout(LONG, answer).await;
    answer.expect("etcd answers")
}
