use super::{configure, database_size};
use crate::redis_lock::kit::NOBODY;
use crate::support::{docker_shared, offline, own_redis};
use std::io::{Read, Write};
use std::net::TcpListener;

#[test]
fn every_mistake_is_told_at_once() {
    let wrong = [
        "--keys",
        "0",
        "--ttl",
        "0ms",
        "--pipeline",
        "0",
        "--connections",
        "99",
    ];
    let given = [&["gen", "--redis", NOBODY], &wrong[..]].concat();
    let ended = offline(&given).expect_code(64).expect_short_error(4);
    ended.expect_said(&["--keys", "--ttl", "--pipeline", "--connections"]);
}

#[test]
fn numbers_that_are_none_are_refused_with_what_would_be_right() {
    let keys = offline(&["gen", "--redis", NOBODY, "--keys", "ten"]).expect_code(64);
    keys.expect_said(&["10M, 500k"]);
    let ttl = ["gen", "--redis", NOBODY, "--keys", "1", "--ttl", "60"];
    offline(&ttl).expect_code(64).expect_said(&["60s, 500ms"]);
}

#[test]
fn an_address_where_nobody_is() {
    let ended = offline(&["gen", "--redis", NOBODY, "--keys", "10"]);
    let ended = ended.expect_code(69).expect_short_error(1);
    ended.expect_said(&[NOBODY, "does not answer"]);
    let ended = offline(&["gen", "--redis", "not an address", "--keys", "10"]);
    ended.expect_code(64).expect_said(&["not an address"]);
}

#[test]
fn who_is_no_redis_is_told_so() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    // Ends with the test process.
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let ended = offline(&["gen", "--redis", &address, "--keys", "10"]);
    let ended = ended.expect_code(69).expect_short_error(1);
    ended.expect_said(&[&address, "no Redis"]);
}

#[tokio::test]
async fn a_password_is_asked_for_and_used() {
    let _turn = docker_shared();
    let server = own_redis();
    let address = &server.address;
    configure(address, "requirepass", "open sesame").await;
    let without = offline(&["gen", "--redis", address, "--keys", "10"]).expect_code(64);
    without.expect_said(&["asks for a password", "redis://:PASSWORD@"]);
    let wrong = format!("redis://:mellon@{address}");
    let wrong = offline(&["gen", "--redis", &wrong, "--keys", "10"]).expect_code(64);
    assert!(!wrong.stderr.contains("mellon"), "{wrong}");
    let url = format!("redis://:open%20sesame@{address}/2");
    offline(&["gen", "--redis", &url, "--keys", "10"]).expect_code(0);
    assert_eq!(
        database_size(&format!(":open%20sesame@{address}/2")).await,
        10
    );
}
