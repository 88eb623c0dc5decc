use super::*;

const REDIS: &str = "{ backend: redis, ttl: 2s }";

/// A request that hangs in the network until after the TTL is as bad as a
/// worker that does.
const LATE_WRITE: &str = "\
workers:
  a: { key: k, gate: before_write, on_lost: ignore }
  b: { key: k, start: late.began }
timeline:
  - { when: a.at_gate, name: late, do: { stall: a -> resource } }
  - { when: b.released, do: { heal: late } }
cases:
  unfenced: { fence: off, expect: { violations: 1.., accepted_writers: 2 } }
  fenced: { fence: on, expect: { violations: 0, stale_rejections: 1 } }
";

#[test]
fn a_cut_that_was_only_asked_for_is_inconclusive() {
    let _turn = docker_shared();
    let tried = Tried::new("sham-cut", "redis", REDIS, LATE_WRITE);
    let sham = ["--case", "fenced", "--mutant", "nemesis-only-pretends"];
    let ended = tried.run(&sham).expect_code(2);
    ended.expect_said(&["not proven: stall of a -> resource: a probe over a -> resource"]);
}

#[test]
fn a_fault_that_outlives_the_case_is_healed_and_named() {
    let _turn = docker_shared();
    let body = "\
workers:
  a: { key: k, gate: before_write }
timeline:
  - { when: a.at_gate, do: { latency: a -> resource, delay: 500ms } }
cases:
  fenced: { fence: on, expect: { violations: 0, accepted_writes: 1 } }
";
    let tried = Tried::new("outlives", "redis", REDIS, body);
    let ended = tried.run(&[]).expect_code(0);
    ended.expect_said(&["latency of a -> resource outlived the case and was healed"]);
    assert_eq!(tried.came_to("fenced"), ["latency a -> resource healed"]);
}

#[test]
fn a_write_that_was_lost_on_its_way_leaves_nothing_in_doubt() {
    let _turn = docker_shared();
    let body = "\
workers:
  a: { key: k, gate: before_write }
  b: { key: k, start: a.done }
timeline:
  - { when: a.at_gate, name: cut, do: { blackhole: a -> resource } }
  - { when: a.failed, do: { heal: cut } }
cases:
  fenced: { fence: on, expect: { violations: 0, accepted_writers: 1 } }
";
    let tried = Tried::new("lost-write", "redis", REDIS, body);
    tried.run(&[]).expect_code(0);
    let accepted = rows(&tried.case("fenced").join("accepted.jsonl"));
    assert_eq!(accepted.len(), 1, "{accepted:?}");
}

#[test]
fn the_minority_of_a_split_redlock_grants_nothing() {
    let _turn = docker_shared();
    let body = "\
workers:
  a: { key: k, start: split.began }
  b: { key: k, start: split.began }
timeline:
  - after: 0ms
    name: split
    do: { partition: [[a, redis-1, redis-2], [b, redis-3, redis-4, redis-5]], by: refuse }
  - { when: b.done, do: { heal: split } }
cases:
  fenced: { fence: on, expect: { violations: 0, accepted_writers: 2 } }
";
    let lock = "{ backend: redlock, ttl: 2s }";
    let tried = Tried::new("split", "redlock", lock, body);
    tried.run(&[]).expect_code(0);
    let accepted = rows(&tried.case("fenced").join("accepted.jsonl"));
    let first = accepted[0]["owner"].as_str().expect("an owner").to_owned();
    let history = rows(&tried.case("fenced").join("history.jsonl"));
    let granted = history.iter().find(|row| row["event"] == "acquired");
    let granted = granted.expect("somebody was granted it");
    assert_eq!(
        (&granted["worker"], &granted["owner"]),
        (&"b".into(), &first.into())
    );
}
