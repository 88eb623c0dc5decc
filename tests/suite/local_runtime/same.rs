use super::*;

/// One of each: a process that stands still, a link that is cut and a server that
/// dies and is replaced, a clock that is off; on one Redis, a replica, five of
/// them, and etcd. In all of them the order of events is given, not a matter of
/// how fast containers are.
const CORE: [&str; 4] = [
    SCENARIO,
    "redis-failover",
    "redlock-clock-jump",
    "pause-gt-ttl-etcd",
];

#[test]
fn the_core_scenarios_come_to_the_same_on_both() {
    let in_containers = fresh_folder("on-docker");
    {
        let Some(_turn) = docker_alone() else { return };
        let folder = in_containers.to_str().expect("a plain path");
        let run = ["--runtime", "docker", "--results", folder];
        let run = start(command(["run"].iter().chain(&CORE).chain(&run)));
        run.wait_within(FIVE_MINUTES).expect_code(0);
    }
    let Some(local) = local() else { return };
    let as_processes = fresh_folder("on-local");
    let folder = as_processes.to_str().expect("a plain path");
    let run = ["--runtime", "local", "--results", folder];
    let run = local.command(["run"].iter().chain(&CORE).chain(&run));
    start(run).wait_within(FIVE_MINUTES).expect_code(0);
    for scenario in CORE {
        assert_eq!(
            stable(&as_processes, scenario),
            stable(&in_containers, scenario),
            "{scenario}"
        );
        let result = json(&as_processes.join(scenario).join("latest/result.json"));
        assert_eq!(result["environment"]["runtime"], "local");
    }
    assert_eq!(local.left(), [""; 0]);
}

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
    let Some(tried) = Tried::new("restart", body) else {
        return;
    };
    tried.run().expect_code(0);
    for (case, seen) in [("kept", "with its data"), ("lost", "without its data")] {
        let faults = rows(&tried.case(case).join("faults.jsonl"));
        let detail = |row: &serde_json::Value| row["detail"].as_str().map(str::to_owned);
        let details: Vec<String> = faults.iter().filter_map(detail).collect();
        let is_seen = details.iter().any(|detail| detail.ends_with(seen));
        assert!(is_seen, "{case}: {details:?}");
    }
}
