use super::*;

#[test]
fn a_restart_keeps_what_is_on_disk_and_an_empty_one_does_not() {
    let body = "\
topology: redis-durable
lock: { backend: redis, ttl: 20s }
workers:
  a: { key: k, gate: before_write }
timeline:
  - { when: a.at_gate, do: { restart: redis } }
cases:
  kept: { fence: on, expect: { violations: 0, accepted_writes: 1 } }
  lost:
    fence: on
    timeline:
      - { when: a.at_gate, do: { restart-empty: redis } }
    expect: { violations: 0, accepted_writes: 1 }
";
    let tried = Tried::new("restart", body);
    tried.run().expect_code(0);
    for (case, seen) in [("kept", "with its data"), ("lost", "without its data")] {
        let faults = rows(&tried.case(case).join("faults.jsonl"));
        let detail = |row: &serde_json::Value| row["detail"].as_str().map(str::to_owned);
        let details: Vec<String> = faults.iter().filter_map(detail).collect();
        let is_seen = details.iter().any(|detail| detail.ends_with(seen));
        assert!(is_seen, "{case}: {details:?}");
    }
}
