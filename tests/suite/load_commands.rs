//! `contend` and `keyspace` at servers that are there already: what a person gets
//! wrong, and a load from its first arrival to its verdict.

mod at_servers;
mod bad_servers;
mod no_lock_server;

use crate::support::*;

#[test]
fn servers_have_to_be_named() {
    let name_them = "name the lock servers with one of --redis HOST:PORT, --etcd HOST:PORT, ";
    offline(&["contend"])
        .expect_code(64)
        .expect_said(&[name_them]);
    offline(&["keyspace"])
        .expect_code(64)
        .expect_said(&["name the server with --redis HOST:PORT, or --etcd HOST:PORT"]);
    let both = ["keyspace", "--redis", "h:1", "--etcd", "h:2"];
    offline(&both)
        .expect_code(64)
        .expect_said(&["--redis and --etcd: one of them at a time"]);
    let several = ["keyspace", "--redis", "h:1,h:2"];
    offline(&several)
        .expect_code(64)
        .expect_said(&["the keys are made in one Redis; name one"]);
}

#[test]
fn everything_that_is_wrong_is_said_at_once_about_the_option_it_came_from() {
    let wrong = "contend --redis here --contenders 50,x --ttl 5 --work hard --duration 0s \
                 --rate often --keys few --fence of --wait spinn --backend redis,reddis";
    let arguments: Vec<&str> = wrong.split_whitespace().collect();
    offline(&arguments).expect_code(64).expect_said(&[
        "--redis: `here` is not an address; write it like 127.0.0.1:6379",
        "--contenders: `x` is not a whole number",
        "--ttl: `5` is not a duration",
        "--work: `hard` is not a duration",
        "--duration: a duration is longer than 0ms",
        "--rate: `often` is not a rate",
        "--keys: `few` is not a whole number",
        "--fence: unknown fence (on or off) `of`",
        "--wait: `spinn` is not one of: spin, notify, queue",
        "--backend: `reddis` is not one of: redis, redlock,",
    ]);
    let wrong = "keyspace --redis h:1 --keys some --ttl 1 --counters x --effort 11 --watch y";
    let arguments: Vec<&str> = wrong.split_whitespace().collect();
    offline(&arguments).expect_code(64).expect_said(&[
        "--keys: `some` is not a whole number",
        "--ttl: `1` is not a duration",
        "--counters: `x` is not a duration",
        "--effort: `effort` is 1 to 10",
        "--watch: `y` is not a duration",
    ]);
    let of_redis = "keyspace --etcd h:1 --counters 5m --effort 3 --scan";
    let arguments: Vec<&str> = of_redis.split_whitespace().collect();
    offline(&arguments).expect_code(64).expect_said(&[
        "--counters: only a Redis has this",
        "--effort: only a Redis has this",
        "--scan: only a Redis has this",
    ]);
}

#[test]
fn nothing_at_all_is_no_load() {
    let nothing = "contend --redis h:1 --contenders 0 --rate 0 --keys 0 --clients 0 --timeout 0s";
    let arguments: Vec<&str> = nothing.split_whitespace().collect();
    offline(&arguments).expect_code(64).expect_said(&[
        "--contenders: ",
        "--rate: ",
        "--keys: ",
        "--clients: ",
        "--timeout: ",
    ]);
    offline(&["keyspace", "--redis", "h:1", "--keys", "0"])
        .expect_code(64)
        .expect_said(&["--keys: "]);
}

#[test]
fn what_does_not_go_together_is_refused() {
    for (arguments, expected) in [
        (
            "--etcd h:1 --ttl 1s",
            "--ttl: etcd counts leases in whole seconds, and grants at least 2s",
        ),
        ("--etcd h:1 --wait queue", "--wait: only the redis backend"),
        (
            "--redis h:1 --backend etcd",
            "--backend: `etcd` needs an etcd cluster: --etcd",
        ),
        (
            "--redis h:1 --backend redlock",
            "`redlock` needs several independent Redis nodes: three --redis or more",
        ),
        (
            "--redis h:1,h:2,h:3 --backend redis",
            "`redis` needs one Redis: one --redis",
        ),
        (
            "--redis h:1,h:2",
            "--redis: `redlock` needs several independent Redis nodes: three --redis or more",
        ),
        (
            "--redis h:1,h:2,h:1",
            "--redis: h:1 is named twice, and one server counts once",
        ),
        (
            "--etcd h:1 --etcd h:1",
            "--etcd: h:1 is named twice, and one server counts once",
        ),
        (
            "--redis redis://:secret@h:6379",
            "--redis: an address is HOST:PORT, such as 127.0.0.1:6379, without scheme, user or password",
        ),
        (
            "--etcd http://h:2379",
            "--etcd: `http://h:2379` is not an address; write it like 127.0.0.1:6379",
        ),
        (
            "--redis h:1 --closed --rate 5",
            "--rate: `rate` belongs to `model: open`",
        ),
        (
            "--redis h:1 --wait spin,queue --resource http://h:1",
            "--resource: tokens of one lock mean nothing to another",
        ),
    ] {
        let arguments: Vec<&str> = arguments.split_whitespace().collect();
        let given = [&["contend"], arguments.as_slice()].concat();
        offline(&given).expect_code(64).expect_said(&[expected]);
    }
}

/// Nobody listens on port 1, and nothing is begun.
#[test]
fn an_address_that_does_not_answer_is_named() {
    let results = fresh_folder("silent-servers");
    let folder = results.to_str().expect("a readable path");
    let (redis, etcd) = ("127.0.0.1:1", "127.0.0.1:2");
    let given = ["contend", "--redis", redis, "--etcd", etcd];
    offline(&[&given[..], &["--results", folder]].concat())
        .expect_code(69)
        .expect_said(&[
            "--redis: 127.0.0.1:1 does not answer",
            "--etcd: 127.0.0.1:2 does not answer",
        ]);
    offline(&["keyspace", "--redis", redis, "--results", folder])
        .expect_code(69)
        .expect_said(&["--redis: 127.0.0.1:1 does not answer"]);
    let left = std::fs::read_dir(&results).expect("a folder").count();
    assert_eq!(left, 0, "nothing was begun");
}
