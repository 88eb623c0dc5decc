use super::*;

#[test]
fn a_worker_tells_its_own_clocks() {
    let _turn = docker_shared();
    let body = "\
workers:
  a: { key: k, gate: before_write }
timeline:
  - when: a.at_gate
    do:
      - { skew: a, by: -15s, for: 100ms }
      - { skew: a, by: 2s, clock: monotonic, for: 100ms }
      - { drift: a, ppm: 50000, clock: monotonic }
cases:
  fenced: { fence: on, expect: { violations: 0, accepted_writes: 1 } }
";
    let lock = "{ backend: redis, ttl: 30s }";
    let tried = Tried::new("skewed-worker", "redis", lock, body);
    tried.run(&[]).expect_code(0);
    let seen = |row: &&Value| row["stage"] == "observed";
    let faults = tried.faults("fenced");
    let seen: Vec<&str> = faults
        .iter()
        .filter(seen)
        .filter_map(|row| row["detail"].as_str())
        .collect();
    assert_close(moved_ms(seen[0], "realtime"), -15_000);
    assert_close(moved_ms(seen[1], "monotonic"), 2_000);
}

#[track_caller]
fn moved_ms(detail: &str, clock: &str) -> i64 {
    let said = format!("its {clock} clock moved by ");
    let rest = detail.strip_prefix(&said).expect(detail);
    let (ms, _) = rest.split_once(" ms").expect(detail);
    ms.parse().expect(detail)
}

#[track_caller]
fn assert_close(ms: i64, wanted_ms: i64) {
    assert!(
        (ms - wanted_ms).abs() < 1_000,
        "{ms} ms, not {wanted_ms} ms"
    );
}

#[test]
fn what_cannot_be_read_back_is_said_before_anything_runs() {
    let _turn = docker_shared();
    let body = "\
workers:
  a: { key: k, gate: before_write }
timeline:
  - { when: a.at_gate, do: { skew: redis, by: 15s, clock: monotonic } }
cases:
  fenced: { fence: on, expect: { violations: 0 } }
";
    let lock = "{ backend: redis, ttl: 2s }";
    let tried = Tried::new("unreadable-clock", "redis", lock, body);
    let ended = tried.run(&[]).expect_code(2);
    ended.expect_said(&["cannot be done here: skew of redis: nothing of it shows its monotonic"]);
    let history = rows(&tried.case("fenced").join("history.jsonl"));
    assert!(history.is_empty(), "{history:?}");
}

#[test]
fn a_skew_of_what_stands_still_is_refused_at_run_time() {
    let _turn = docker_shared();
    let body = "\
workers:
  a: { key: k, gate: before_write }
  b: { key: k2, start: redis.paused, gate: after_acquire }
timeline:
  - { when: a.at_gate, do: { pause: redis, for: 5s } }
  - { when: a.at_gate, after: 1s, do: { skew: redis, by: 15s } }
cases:
  fenced: { fence: on, expect: { violations: 0 } }
";
    let lock = "{ backend: redis, ttl: 20s }";
    let tried = Tried::new("stopped-target", "redis", lock, body);
    let ended = tried.run(&[]).expect_code(2);
    let ended = ended.expect_said(&["skew of redis: it is stopped"]);
    assert_eq!(owned_by(ended.pid), [""; 0]);
}
