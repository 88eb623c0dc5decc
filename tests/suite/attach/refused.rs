//! Servers that cannot be attached to, and addresses that lead elsewhere.

use super::kit::{ComposeRedis, names, of_a_redis};
use crate::support::*;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn run(topology: &str) -> Ended {
    let topology = format!("topology={topology}");
    fencepost(&["run", SCENARIO, "--runtime", "local", "--set", &topology])
}

#[tokio::test]
async fn a_server_that_looks_like_production_needs_a_yes() {
    let _turn = docker_shared();
    let redis = own_redis();
    of_a_redis(&redis, &["SET", "user:1", "kept"]).await;
    let mut other = connection_to(&redis.address).await;
    let answer: String = redis::cmd("PING").query_async(&mut other).await.unwrap();
    assert_eq!(answer, "PONG");
    let ended = run(&format!("{{ attach: {{ redis: '{}' }} }}", redis.address));
    ended.expect_code(64).expect_said(&[
        "looks like production: 1 key, 1 other client",
        "written there: keys whose names have fencepost-RUN- in them",
        "add --yes if that is meant; nothing was written",
    ]);
    assert_eq!(names(&redis).await, ["user:1"]);
}

/// Two cases give one name to two servers: each of the two is looked at and needs its own yes.
#[tokio::test]
async fn another_server_of_the_same_name_needs_a_yes_of_its_own() {
    let _turn = docker_shared();
    let (unused, used) = (own_redis(), own_redis());
    of_a_redis(&used, &["SET", "user:1", "kept"]).await;
    let mut text = std::fs::read_to_string("scenarios/pause-gt-ttl.yml").unwrap();
    for (case, redis) in [("unfenced", &unused), ("fenced", &used)] {
        let topology = format!("topology: {{ attach: {{ redis: '{}' }} }}", redis.address);
        let case = format!("\n  {case}:\n");
        text = text.replace(&case, &format!("{case}    {topology}\n"));
    }
    let file = fresh_folder("attached-twice").join("pause-gt-ttl.yml");
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().expect("a plain path");
    let ended = fencepost(&["run", file, "--runtime", "local"]);
    ended.expect_code(64).expect_said(&[
        &format!("at {}) is empty and used by nobody", unused.address),
        &format!("at {}) looks like production: 1 key", used.address),
        "add --yes if that is meant; nothing was written",
    ]);
    assert_eq!(names(&used).await, ["user:1"]);
}

/// A person was told about the first one alone. It is looked at before the first of one case, and of
/// two cases.
#[tokio::test]
async fn nothing_is_written_to_a_second_server_at_the_same_address() {
    let _turn = docker_shared();
    let (first, second) = (own_redis(), own_redis());
    for cases in [&["--case", "fenced"][..], &[]] {
        let address = leading_to(&first, &second);
        let topology = format!("topology={{ attach: {{ redis: '{address}' }} }}");
        let run = ["run", SCENARIO, "--runtime", "local", "--set", &topology];
        let ended = fencepost(&[&run[..], cases].concat());
        ended.expect_code(69).expect_said(&[
            "cannot use redis: it is another server than the one that was looked at",
        ]);
        for server in [&first, &second] {
            assert_eq!(names(server).await, [""; 0]);
        }
    }
}

/// Returns an address that leads to the first server until somebody has asked for a setting, which
/// is the last question before the first case, and to the second one from then on.
fn leading_to(first: &Server, second: &Server) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound").to_string();
    let servers = [first, second].map(|server| server.address.clone());
    std::thread::spawn(move || {
        let was_asked = Arc::new(AtomicBool::new(false));
        for client in listener.incoming() {
            let mut client = client.expect("a client");
            let server = &servers[usize::from(was_asked.load(Ordering::SeqCst))];
            let mut server = TcpStream::connect(server).expect("a server");
            let mut answers = server.try_clone().expect("a socket");
            let mut answered = client.try_clone().expect("a socket");
            std::thread::spawn(move || std::io::copy(&mut answers, &mut answered));
            let was_asked = was_asked.clone();
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(count @ 1..) = client.read(&mut bytes) {
                    let is_question = bytes[..count].windows(6).any(|it| it == b"CONFIG");
                    was_asked.fetch_or(is_question, Ordering::SeqCst);
                    if server.write_all(&bytes[..count]).is_err() {
                        break;
                    }
                }
                let _ = server.shutdown(Shutdown::Both);
            });
        }
    });
    address
}

#[tokio::test]
async fn an_address_that_leads_elsewhere_is_found_out() {
    let _turn = docker_shared();
    let (redis, postgres) = (own_redis(), own_postgres());
    let (redis_at, postgres_at) = (&redis.address, &postgres.address);
    run(&format!("{{ attach: {{ redis: '{postgres_at}' }} }}"))
        .expect_code(69)
        .expect_said(&["as redis: ", "the address leads elsewhere"]);
    let twice =
        format!("{{ attach: {{ one: '{redis_at}', two: '{redis_at}', three: '{redis_at}' }} }}");
    let topology = format!("topology={twice}");
    let redlock = [
        "run",
        "pause-gt-ttl-redlock",
        "--runtime",
        "local",
        "--set",
        &topology,
    ];
    fencepost(&redlock)
        .expect_code(64)
        .expect_said(&["both lead to one server"]);
    let replica = own_redis();
    let (host, port) = redis_at.split_once(':').unwrap();
    of_a_redis(&replica, &["REPLICAOF", host, port]).await;
    run(&format!("{{ attach: {{ redis: '{}' }} }}", replica.address))
        .expect_code(69)
        .expect_said(&[&format!(
            "it is a replica, where nothing can be written; name its primary {redis_at}"
        )]);
    run("{ attach: { redis: '127.0.0.1:1' } }")
        .expect_code(69)
        .expect_said(&["cannot use 127.0.0.1:1: Connection refused"])
        .expect_short_error(1);
    run("{ attach: { redis: 'no-such-host.invalid:1' } }").expect_code(69);
}

/// The keys of a case would be at two servers, and the record of one.
#[tokio::test]
async fn a_server_that_was_started_anew_meanwhile_makes_a_case_uncertain() {
    let _turn = docker_shared();
    let redis = own_redis();
    let results = fresh_folder("attached-anew");
    let folder = results.to_str().expect("a plain path");
    let at = format!("topology.attach.redis={}", redis.address);
    let run = [
        "run",
        SCENARIO,
        "--runtime",
        "local",
        "--case",
        "fenced",
        "--set",
        &at,
    ];
    let running = start(command(run.into_iter().chain(["--results", folder])));
    let faults = results.join(SCENARIO).join("latest/fenced/faults.jsonl");
    await_row(&faults, |row| row["stage"] == "observed");
    redis.stop();
    redis.start();
    let ended = running.wait();
    // The new server has forgotten the lock, so there may be more to say than this.
    assert!(matches!(ended.code, Some(1 | 2)), "{ended}");
    ended.expect_said(&["not certain: redis was another server at the end than at the beginning"]);
}

#[test]
fn a_password_is_in_a_variable_and_nowhere_else() {
    let in_the_file = "{ attach: { redis: { address: 'h:1', login: 'me:s3cret' } } }";
    let ended = run(in_the_file).expect_code(64);
    ended.expect_said(&["the password itself must not stand in it"]);
    let typed = "{ attach: { redis: 'redis://me:s3cret@h:1' } }";
    let as_url = run(typed).expect_code(64);
    // Beside the place, which is what was typed.
    let said = as_url.stderr.replace(typed, "");
    assert!(!said.contains("s3cret"), "{said}");
    as_url.expect_said(&["`redis://***@h:1` is not an address; write HOST:PORT"]);
}

#[test]
fn a_password_lets_workers_and_observer_in() {
    let _turn = docker_shared();
    let redis = ComposeRedis::start("password");
    redis.said(&["CONFIG", "SET", "requirepass", "s3cret"]);
    let topology = format!(
        "topology={{ attach: {{ redis: {{ compose: {}/cache, login: ':${{CACHE_PASSWORD}}' }} }}, allow_settings_on: [redis] }}",
        redis.project
    );
    let results = fresh_folder("attached-password");
    let folder = results.to_str().expect("a plain path");
    let run = [
        "run",
        SCENARIO,
        "--case",
        "fenced",
        "--set",
        &topology,
        "--results",
        folder,
    ];
    let unset = start(command(run)).wait().expect_code(69);
    unset.expect_said(&["the variable CACHE_PASSWORD, which is not set; set it"]);
    let mut with = command(run);
    with.env("CACHE_PASSWORD", "s3cret");
    start(with).wait().expect_code(0);
    let kept = std::process::Command::new("grep")
        .args(["-rl", "s3cret", folder])
        .output()
        .expect("grep");
    assert_eq!(
        String::from_utf8_lossy(&kept.stdout),
        "",
        "no result has it"
    );
}

#[test]
fn a_compose_service_that_is_not_there_or_not_alone_is_refused() {
    let _turn = docker_shared();
    let redis = ComposeRedis::start("services");
    let of = |service: &str| {
        run(&format!(
            "{{ attach: {{ redis: {{ compose: {service} }} }} }}"
        ))
    };
    of("no-such-project/redis")
        .expect_code(69)
        .expect_said(&["no container of a project no-such-project is running"]);
    of(&format!("{}/cash", redis.project))
        .expect_code(69)
        .expect_said(&["no such service is running", "these are: cache"]);
}

#[test]
fn what_cannot_be_attached_to_is_refused_with_its_place() {
    for (scenario, topology, says) in [
        (
            SCENARIO,
            "{ attach: {} }",
            "expected the servers by name, found none",
        ),
        (
            SCENARIO,
            "{ attach: { redis: nowhere } }",
            "`nowhere` is not an address; write HOST:PORT",
        ),
        (
            SCENARIO,
            "{ attach: { redis: 'h:1' }, allow_faults_on: [rdis] }",
            "did you mean `redis`?",
        ),
        (
            SCENARIO,
            "{ attach: { a: 'h:1', b: 'h:2' } }",
            "`redis` needs one Redis, and 2 are attached",
        ),
        (
            SCENARIO,
            "{ attach: { redis: { compose: shop } } }",
            "`shop` is not PROJECT/SERVICE",
        ),
        (
            SCENARIO,
            "{ attach: { redis: { compose: a/b, adress: 'h:1' } } }",
            "did you mean `address`?",
        ),
        (
            SCENARIO,
            "{ attach: { resource: 'h:1' } }",
            "cannot be the name of an attached server",
        ),
        (
            SCENARIO,
            "{ attach: { a: 'h:1' } }",
            "`a` is the name of a worker or of the resource",
        ),
        (
            "pause-gt-ttl-zookeeper",
            "{ attach: { zookeeper: 'h:1' } }",
            "`zookeeper` cannot be attached to",
        ),
        (
            "pause-gt-ttl-etcd",
            "{ attach: { etcd: { address: 'h:1', login: me } } }",
            "leave `login` out",
        ),
        (
            "hot-key-fairness",
            "{ attach: { redis: 'h:1' } }",
            "`fencepost contend`",
        ),
    ] {
        let topology = format!("topology={topology}");
        let plan = offline(&["plan", scenario, "--set", &topology]);
        plan.expect_code(64).expect_said(&[says]);
    }
    let plan = offline(&[
        "plan",
        SCENARIO,
        "--set",
        "topology.attach.redis=127.0.0.1:6379",
    ]);
    plan.expect_code(0).expect_said(&[
        "use redis, which is there already at 127.0.0.1:6379",
        "start resource on a private network",
    ]);
}
