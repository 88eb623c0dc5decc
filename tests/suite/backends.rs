//! The same experiment on every lock service, switched by a word in the
//! scenario.

use crate::support::*;
use serde_json::Value;
use std::path::Path;

#[test]
fn on_redlock_and_on_etcd_the_fence_is_what_saves_the_resource() {
    let Some(_turn) = docker_alone() else { return };
    for backend in ["redlock", "etcd"] {
        // A majority of the five, and all of the three. A node to which the
        // holder was still connecting when the majority had answered is not asked.
        let nodes = 3;
        let name = format!("pause-gt-ttl-{backend}");
        let results = fresh_folder(&name);
        let ended = run(None, &name, &results).expect_code(0);
        assert_eq!(owned_by(ended.pid), [""; 0]);
        let latest = results.join(&name).join("latest");
        let result = json(&latest.join("result.json"));
        for case in ["unfenced", "fenced"] {
            let stable = &result["stable"]["cases"][case];
            assert_eq!(stable["doubts"], serde_json::json!([]), "{name}");
            let locks = rows(&latest.join(case).join("locks.jsonl"));
            let seen = |event: &str| seen_on(&locks, event);
            assert!(seen("granted") >= nodes, "{name}: {locks:#?}");
            assert!(seen("expired") >= nodes, "{name}: {locks:#?}");
        }
    }
}

/// What cannot be named in a scenario of the library without a topology or a
/// fault that it does not have yet: the words of `lock` themselves.
#[test]
fn every_word_of_the_lock_reaches_the_workers() {
    let Some(_turn) = docker_alone() else { return };
    let home = Home::new();
    for (n, (topology, lock)) in [
        ("redis", "backend: redis, wait: notify"),
        (
            "redis",
            "backend: redis, wait: queue, fence_floor: server-clock",
        ),
        (
            "redis-durable",
            "backend: redis, release: unsafe-get-then-del",
        ),
        ("redlock", "backend: redlock-unsafe-tokens"),
        ("etcd", "backend: etcd-lock-api"),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("word-{n}");
        let text = format!(
            "name: {name}\nabout: Two workers, nothing goes wrong.\ntopology: {topology}\n\
             lock: {{ {lock}, ttl: 5s }}\nworkers:\n  a: {{ key: k, rounds: 3 }}\n  \
             b: {{ key: k, rounds: 3 }}\ncases:\n  \
             fenced: {{ fence: on, expect: {{ violations: 0, accepted_writes: 6 }} }}\n"
        );
        home.write(&format!("scenarios/{name}.yml"), text);
        let results = fresh_folder(&name);
        let ended = run(Some(home.path()), &name, &results).expect_code(0);
        let latest = results.join(&name).join("latest");
        let history = rows(&latest.join("fenced/history.jsonl"));
        let released = history.iter().filter(|row| row["event"] == "released");
        let outcomes: Vec<&Value> = released.map(|row| &row["outcome"]).collect();
        assert_eq!(outcomes, ["released"; 6], "{lock}: {ended}");
    }
}

fn run(home: Option<&str>, scenario: &str, results: &Path) -> Ended {
    let results = results.to_str().expect("a plain path");
    let mut arguments = vec!["run", scenario, "--results", results];
    if let Some(home) = home {
        arguments.extend(["--home", home]);
    }
    fencepost(&arguments)
}

/// How many nodes saw this happen.
fn seen_on(locks: &[Value], event: &str) -> usize {
    let rows = locks.iter().filter(|row| row["event"] == event);
    let nodes: std::collections::BTreeSet<_> = rows.map(|row| row["node"].to_string()).collect();
    nodes.len()
}
