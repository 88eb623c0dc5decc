//! How fast `fencepost gen` fills a Redis, beside redis-benchmark with the same command:
//! `cargo bench --bench gen`, with `-- --quick` for a first look.

use std::process::{Command, ExitCode};

#[path = "../tests/suite/support"]
#[allow(dead_code, unused_imports, reason = "the tests use the rest of it")]
mod support {
    pub mod docker;
    pub mod said;
    pub mod servers;
    pub mod session;
}

use support::docker::docker_ok;
use support::servers::{Server, own_redis};

const LEAST_RATIO: f64 = 0.8;
const MOST_MEMORY_MIB: f64 = 100.0;
/// So long that nothing runs out while it is measured.
const TTL: &str = "10m";
const TTL_MS: &str = "600000";
/// As long as an owner of ours.
const OWNER: &str = "f34fe924-8c93-42e5-9f70-a8031e36916e";
/// The most that redis-benchmark draws its keys from.
const RANDOM_KEYS: &str = "2147483647";

struct Size {
    keys: u64,
    rounds: usize,
    pipeline: u64,
    connections: u64,
}

fn main() -> ExitCode {
    let size = Size::asked_for();
    let Size {
        keys,
        rounds,
        pipeline,
        connections,
    } = size;
    println!(
        "{keys} unique keys, each SET … NX PX, {pipeline} commands in a pipeline, {connections} connections, one"
    );
    println!(
        "Redis of our own without a disk. {rounds} rounds in which both take turns, each on an empty server."
    );
    println!();
    let server = own_redis();
    let (mut ratios, mut most_memory_mib) = (Vec::new(), 0.0_f64);
    println!("round   redis-benchmark/s   distinct   fencepost gen/s   ratio   memory MiB");
    for round in 1..=rounds {
        let (mut theirs, mut ours) = ((0.0, 0.0), (0.0, 0.0));
        // Nobody is always the first.
        for turn in 0..2 {
            redis(&server, &["FLUSHALL"]);
            match (turn + round) % 2 {
                0 => theirs = redis_benchmark(&server, &size),
                _ => ours = generate(&server, &size),
            }
        }
        let (ratio, memory_mib) = (ours.0 / theirs.0, ours.1);
        println!(
            "{round:>5}   {:>17.0}   {:>7.3} %   {:>15.0}   {ratio:>5.2}   {memory_mib:>10.1}",
            theirs.0,
            theirs.1 * 100.0,
            ours.0
        );
        ratios.push(ratio);
        most_memory_mib = most_memory_mib.max(memory_mib);
    }
    ratios.sort_by(f64::total_cmp);
    let quartile = |part: usize| ratios[(ratios.len() - 1) * part / 4];
    let is_met = quartile(2) >= LEAST_RATIO && most_memory_mib < MOST_MEMORY_MIB;
    println!();
    println!(
        "ratio {:.2} (quartiles {:.2} to {:.2}), wanted {LEAST_RATIO}; memory {most_memory_mib:.1} MiB, wanted below {MOST_MEMORY_MIB}: {}",
        quartile(2),
        quartile(1),
        quartile(3),
        if is_met { "met" } else { "MISSED" }
    );
    let is_strict = std::env::args().any(|argument| argument == "--strict");
    match is_met || !is_strict {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

impl Size {
    fn asked_for() -> Size {
        let arguments: Vec<String> = std::env::args().collect();
        let is_quick = arguments.iter().any(|argument| argument == "--quick");
        let number = |name: &str, otherwise: u64| {
            let at = arguments.iter().position(|argument| argument == name);
            let Some(at) = at else { return otherwise };
            let given = arguments.get(at + 1).map(String::as_str);
            let count = given.and_then(fencepost::model::parse_count);
            let count = count.filter(|count| *count > 0);
            count.unwrap_or_else(|| panic!("{name} wants a number like 10M"))
        };
        Size {
            keys: number("--keys", if is_quick { 100_000 } else { 1_000_000 }),
            rounds: number("--rounds", if is_quick { 2 } else { 7 }) as usize,
            pipeline: number("--pipeline", 100),
            connections: number("--connections", 2),
        }
    }
}

/// Keys a second by its own account, and the share of them that was distinct: it draws its keys
/// at random.
fn redis_benchmark(server: &Server, size: &Size) -> (f64, f64) {
    let sizes = [
        size.keys.to_string(),
        size.pipeline.to_string(),
        size.connections.to_string(),
    ];
    let [keys, pipeline, connections] = sizes.each_ref().map(String::as_str);
    let flags = [
        "-n",
        keys,
        "-P",
        pipeline,
        "-c",
        connections,
        "-r",
        RANDOM_KEYS,
        "--csv",
    ];
    let set = ["SET", "lock:{__rand_int__}", OWNER, "NX", "PX", TTL_MS];
    let whole = [
        "exec",
        &server.container,
        "redis-benchmark",
        "-p",
        port(server),
    ];
    let said = docker_ok(&[&whole, &flags[..], &set].concat());
    // "test","rps",…: the second column of the last line.
    let rate = said
        .lines()
        .last()
        .and_then(|line| line.split("\",\"").nth(1));
    let rate = rate.and_then(|rate| rate.parse().ok());
    let rate = rate.unwrap_or_else(|| panic!("redis-benchmark said {said}"));
    let present: u64 = redis(server, &["DBSIZE"]).trim().parse().expect("a number");
    (rate, present as f64 / size.keys as f64)
}

/// Keys a second by its own account, and its memory.
fn generate(server: &Server, size: &Size) -> (f64, f64) {
    let ended = Command::new(env!("CARGO_BIN_EXE_fencepost"))
        .args(["gen", "--redis", &server.address, "--ttl", TTL])
        .args(["--keys", &size.keys.to_string()])
        .args(["--pipeline", &size.pipeline.to_string()])
        .args(["--connections", &size.connections.to_string()])
        .output()
        .expect("the program starts");
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(
        ended.status.success(),
        "{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    let present = redis(server, &["DBSIZE"]);
    assert_eq!(present.trim(), size.keys.to_string(), "every key is there");
    let line = |name: &str| said.lines().find_map(|line| line.strip_prefix(name));
    let rate = line("made").and_then(|line| line.rsplit(": ").next()?.split(' ').next());
    let rate = rate.and_then(|rate| rate.replace(',', "").parse().ok());
    let memory = line("memory").and_then(|line| line.split_whitespace().next());
    let memory = memory.and_then(|memory| memory.parse().ok());
    let (rate, memory) = rate.zip(memory).unwrap_or_else(|| panic!("it said {said}"));
    (rate, memory)
}

fn redis(server: &Server, words: &[&str]) -> String {
    let whole = ["exec", &server.container, "redis-cli", "-p", port(server)];
    docker_ok(&[&whole, words].concat())
}

fn port(server: &Server) -> &str {
    server.address.rsplit(':').next().expect("host:port")
}
