use super::*;

#[test]
fn a_restart_keeps_what_is_on_disk_and_an_empty_one_does_not() {
    let lock = "{ backend: redis, ttl: 20s }";
    keeps_its_data("redis", "redis-durable", lock, local());
}

/// The folder is made at the first start and kept over a kill, but not over an empty restart.
#[test]
fn a_database_keeps_its_data_over_a_restart_unless_it_is_an_empty_one() {
    let lock = "{ backend: postgres-lease, ttl: 40s }";
    keeps_its_data("postgres", "postgres", lock, local_with_databases());
}

/// Restarts a server while its lock is held.
fn keeps_its_data(server: &str, topology: &str, lock: &str, local: Local) {
    let body = format!(
        "\
topology: {topology}
lock: {lock}
workers:
  a: {{ key: k, gate: before_write }}
timeline:
  - {{ when: a.at_gate, do: {{ restart: {server} }} }}
cases:
  kept: {{ fence: on, expect: {{ violations: 0, accepted_writes: 1 }} }}
  lost:
    fence: on
    timeline:
      - {{ when: a.at_gate, do: {{ restart-empty: {server} }} }}
    expect: {{ violations: 0, accepted_writes: 1 }}
"
    );
    let tried = Tried::with(&format!("restarted-{server}"), &body, local);
    tried.run().expect_code(0);
    for (case, seen) in [("kept", "with its data"), ("lost", "without its data")] {
        let faults = rows(&tried.case(case).join("faults.jsonl"));
        let detail = |row: &serde_json::Value| row["detail"].as_str().map(str::to_owned);
        let details: Vec<String> = faults.iter().filter_map(detail).collect();
        let is_seen = details.iter().any(|detail| detail.ends_with(seen));
        assert!(is_seen, "{case}: {details:?}");
    }
}
