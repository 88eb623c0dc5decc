//! Inputs that nobody would write: every file of the fuzz corpus, and mutations of
//! them and of the files that are shipped, by a seed. `just fuzz` does the same with
//! a fuzzer that sees which code it reaches.

#[path = "../../fuzz/src/lib.rs"]
mod targets;

use crate::support::*;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How many inputs all targets get together.
const INPUTS: &str = "FENCEPOST_FUZZ_INPUTS";
const DEFAULT_INPUTS: u64 = 8_000;
/// No input takes this long, on the busiest machine.
const HANG: Duration = Duration::from_secs(20);
/// A mutation does not grow beyond this.
const LARGEST: usize = 64 << 10;

#[test]
fn scenarios() {
    fuzz("scenario", 30, files_of("scenarios"));
}

#[test]
fn topologies() {
    fuzz("topology", 30, files_of("compose"));
}

#[test]
fn records() {
    let folders = folder_of("tests/corpus").into_iter();
    fuzz(
        "record",
        10,
        folders.map(|folder| packed(&folder)).collect(),
    );
}

#[test]
fn results() {
    let folders = folder_of("tests/results/pause-gt-ttl").into_iter();
    let results = folders.filter_map(|folder| fs::read(folder.join("result.json")).ok());
    fuzz("result", 20, results.collect());
}

#[test]
fn lines_to_a_worker() {
    fuzz("worker_lines", 4, Vec::new());
}

#[test]
fn requests_to_the_resource() {
    fuzz("resource_http", 2, Vec::new());
}

#[test]
fn requests_to_toxiproxy() {
    fuzz("toxiproxy_http", 2, Vec::new());
}

#[test]
fn answers_of_a_redis() {
    fuzz("resp", 2, Vec::new());
}

/// `percent` of all inputs are for this target.
fn fuzz(name: &str, percent: u64, mut seeds: Vec<Vec<u8>>) {
    let (_, target) = targets::TARGETS
        .into_iter()
        .find(|it| it.0 == name)
        .expect("a target");
    let corpus = files_of(&format!("fuzz/corpus/{name}"));
    assert!(!corpus.is_empty(), "fuzz/corpus/{name} has no inputs");
    seeds.extend(corpus);
    for seed in &seeds {
        play(name, target, seed);
    }
    let all = std::env::var(INPUTS)
        .ok()
        .and_then(|count| count.parse().ok());
    let count = all.unwrap_or(DEFAULT_INPUTS) * percent / 100;
    let mut rng = fastrand::Rng::with_seed(1);
    for _ in 0..count {
        play(name, target, &mutated(&seeds, &mut rng));
    }
}

/// What fails is kept, so that it can become a file of the corpus.
fn play(name: &str, target: targets::Target, input: &[u8]) {
    let started = Instant::now();
    let panicked = catch_unwind(|| target(input)).is_err();
    let took = started.elapsed();
    if panicked || took > HANG {
        let kept = fresh_folder(&format!("fuzz-{name}")).join("input");
        fs::write(&kept, input).expect("a file");
        let kept = kept.display();
        panic!("{name} took {took:?}, panicked: {panicked}; the input is {kept}");
    }
}

fn folder_of(path: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(project().join(path)).expect("a folder");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    paths
}

fn files_of(path: &str) -> Vec<Vec<u8>> {
    let files = folder_of(path).into_iter().filter(|path| path.is_file());
    files
        .map(|file| fs::read(file).expect("readable"))
        .collect()
}

/// A recorded case as one input.
fn packed(folder: &Path) -> Vec<u8> {
    let files = targets::RECORD_FILES.iter().filter_map(|name| {
        let content = fs::read_to_string(folder.join(name)).ok()?;
        Some(format!("=== {name}\n{content}"))
    });
    files.collect::<String>().into_bytes()
}

/// What numbers, quotes, ends and nothing do to a reader.
const WORDS: [&str; 32] = [
    "\"",
    "'",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\n",
    "\r\n",
    "\0",
    "&a",
    "*a",
    "!!t ",
    "- ",
    "null",
    "-1",
    "0",
    "1e999",
    "18446744073709551615",
    "9223372036854775808",
    "\u{202e}",
    "\u{1b}[2J",
    "../",
    "$(x)",
    "GET / HTTP/1.1\r\n",
    "content-length: 99999\r\n",
    "transfer-encoding: chunked\r\n",
    "$536870912\r\n",
    "*1000000\r\n",
    ":1\r\n",
    "-ERR \u{7}\r\n",
];

/// One to eight changes to one of them.
fn mutated(seeds: &[Vec<u8>], rng: &mut fastrand::Rng) -> Vec<u8> {
    let pick = |rng: &mut fastrand::Rng| &seeds[rng.usize(..seeds.len())];
    let mut input = pick(rng).clone();
    for _ in 0..rng.usize(1..=8) {
        let at = rng.usize(..=input.len());
        let to = (at + rng.usize(..=32)).min(input.len());
        match rng.u8(..6) {
            0 => drop(input.drain(at..to)),
            1 => drop(input.splice(at..at, WORDS[rng.usize(..WORDS.len())].bytes())),
            2 => drop(input.splice(at..to, WORDS[rng.usize(..WORDS.len())].bytes())),
            3 => input[at..to]
                .iter_mut()
                .for_each(|byte| *byte ^= 1 << rng.u8(..8)),
            4 => {
                let again = input[at..to].repeat(rng.usize(1..=64));
                drop(input.splice(at..at, again));
            }
            _ => {
                let other = pick(rng);
                let from = rng.usize(..=other.len());
                drop(input.splice(at.., other[from..].iter().copied()));
            }
        }
        input.truncate(LARGEST);
    }
    input
}
