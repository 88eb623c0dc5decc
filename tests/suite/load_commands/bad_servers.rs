//! Loads at servers that are silent, or not as a lock needs them. Each is named, and nothing hangs.

use crate::support::*;
use fencing_lock::servers::connect_postgres;
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

/// Servers on a busy machine; a load itself would take half a minute.
const WITHIN: Duration = Duration::from_secs(25);

/// Asks for a load at a server that cannot take it, and returns what was said.
fn refused(arguments: &str, says: &[&str]) {
    let results = fresh_folder(&format!("refused-{}", arguments.replace([' ', ':'], "-")));
    let results = results.to_str().expect("a readable path");
    let load = format!("contend {arguments} --duration 30s --results {results}");
    let arguments: Vec<&str> = load.split_whitespace().collect();
    let began = Instant::now();
    let ended = offline(&arguments).expect_code(69);
    assert!(began.elapsed() < WITHIN, "{load}: {:?}", began.elapsed());
    ended.expect_said(says);
}

/// It takes connections and requests, and never answers.
#[test]
fn a_server_that_is_silent_is_named_soon() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = &silent.local_addr().expect("an address").to_string();
    let clients = thread::spawn(move || silent.incoming().flatten().collect::<Vec<_>>());
    thread::scope(|scope| {
        for (option, lock) in [
            ("redis", "redis"),
            ("etcd", "etcd"),
            ("zookeeper", "zookeeper"),
            ("postgres", "postgres-lease"),
            ("postgres", "postgres-advisory"),
            ("mariadb", "mariadb"),
            ("consul", "consul"),
            ("dynamodb", "dynamodb"),
        ] {
            scope.spawn(move || {
                let says = format!("{lock} at {address} does not answer: ");
                refused(&format!("--{option} {address} --backend {lock}"), &[&says]);
            });
        }
    });
    assert!(!clients.is_finished(), "it ends with this process");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_no_lock_can_use_is_named_with_the_remedy() {
    let _turn = docker_shared();
    let server = own_postgres();
    let admin = connect_postgres(&server.address, Duration::from_secs(5), |_| {});
    let admin = admin.await.unwrap();
    for (statement, lock, remedy) in [
        (
            "CREATE TABLE fencing_locks (a int)",
            "postgres-lease",
            "somebody else made this table",
        ),
        (
            "DROP TABLE fencing_locks;
             ALTER DATABASE postgres SET default_transaction_read_only = on",
            "postgres-lease",
            "name the primary",
        ),
        ("", "postgres-advisory", "name the primary"),
        (
            "SET default_transaction_read_only = off;
             CREATE ROLE another SUPERUSER; ALTER ROLE postgres NOLOGIN",
            "postgres-lease",
            "is not permitted to log in",
        ),
    ] {
        admin.batch_execute(statement).await.unwrap();
        let says = format!("cannot use {lock} at {}: refused: ", server.address);
        let arguments = format!("--postgres {} --backend {lock}", server.address);
        tokio::task::block_in_place(|| refused(&arguments, &[&says, remedy]));
    }
}

#[test]
fn a_ttl_that_a_service_cannot_keep_is_refused_before_anything_begins() {
    for (service, ttl, says) in [
        ("zookeeper", "200ms", "sessions of 500ms to 60s"),
        ("consul", "500ms", "no session for less than 1s"),
    ] {
        let given = [
            "contend",
            &format!("--{service}"),
            "127.0.0.1:1",
            "--ttl",
            ttl,
        ];
        offline(&given)
            .expect_code(64)
            .expect_said(&["--ttl: ", says]);
    }
}
