//! The words of `lock` that no scenario of the library uses.

use crate::support::*;
use serde_json::Value;

const NAME: &str = "words";

const SCENARIO: &str = "\
name: words
about: Two workers, nothing goes wrong.
topology: redis
lock: { backend: redis, ttl: 5s }
workers:
  a: { key: k, rounds: 3 }
  b: { key: k, rounds: 3 }
fence: on
expect: { violations: 0, accepted_writes: 6 }
cases:
  notify: { lock: { wait: notify } }
  queue: { lock: { wait: queue, fence_floor: server-clock } }
  unsafe-release: { topology: redis-durable, lock: { release: unsafe-get-then-del } }
  lock-api: { topology: etcd, lock: { backend: etcd-lock-api } }
";

#[test]
fn every_word_of_the_lock_reaches_the_workers() {
    let _turn = docker_shared();
    let home = Home::new();
    home.write(&format!("scenarios/{NAME}.yml"), SCENARIO);
    let results = fresh_folder(NAME);
    let folder = results.to_str().expect("a plain path");
    let run = ["run", NAME, "--home", home.path(), "--results", folder];
    fencepost(&run).expect_code(0);
    for case in ["notify", "queue", "unsafe-release", "lock-api"] {
        let latest = results.join(NAME).join("latest").join(case);
        let history = rows(&latest.join("history.jsonl"));
        let released = history.iter().filter(|row| row["event"] == "released");
        let outcomes: Vec<&Value> = released.map(|row| &row["outcome"]).collect();
        assert_eq!(outcomes, ["released"; 6], "{case}");
    }
}
