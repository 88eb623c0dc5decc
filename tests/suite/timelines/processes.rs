use super::*;

#[test]
fn a_worker_that_is_killed_in_its_hold_is_followed_by_the_next() {
    let _turn = docker_shared();
    let body = "\
workers:
  a: { key: k, gate: before_write }
  b: { key: k, start: a.killed }
timeline:
  - { when: a.at_gate, do: { kill: a } }
cases:
  fenced:
    fence: on
    expect:
      violations: 0
      accepted_writers: 1
      overlaps: 0
      blocked: 100ms..20s
      order: [a.killed, b.acquiring, b.acquired]
";
    let tried = Tried::new(
        "killed-worker",
        "redis",
        "{ backend: redis, ttl: 4s }",
        body,
    );
    tried
        .run(&[])
        .expect_code(0)
        .expect_said(&["blocked ", "order kept"]);
    assert_eq!(tried.came_to("fenced"), ["kill a observed"]);
    let result = json(&tried.case("").join("result.json"));
    let blocked_ms = result["measurements"]["fenced"]["blocked_ms"].as_u64();
    assert!(blocked_ms.is_some_and(|ms| ms > 100), "{result:#}");
    let findings = &result["stable"]["cases"]["fenced"]["findings"];
    let blocked = findings.as_array().expect("findings");
    let blocked = blocked.iter().find(|it| it["what"] == "blocked");
    let blocked = blocked.expect("what was expected");
    assert_eq!(blocked["held"], true);
    assert_eq!(blocked.get("found"), None, "it differs from run to run");
}

/// Its metric starts again at 0, and the log does not.
#[test]
fn a_resource_that_is_killed_between_two_refusals_still_knows_its_fence() {
    let _turn = docker_shared();
    let body = "\
workers:
  a: { key: k, gate: before_write }
  b: { key: k, start: a.at_gate }
  c: { key: k, start: resource.restarted, gate: before_write }
  d: { key: k, start: c.at_gate }
timeline:
  - { when: a.at_gate, do: { wait: 2s } }
  - { when: a.write_rejected, do: { kill: resource, for: 200ms } }
  - { when: c.at_gate, do: { wait: 2s } }
cases:
  fenced:
    fence: on
    expect:
      violations: 0
      stale_rejections: 2
      order: [a.write_rejected, resource.killed, resource.restarted, c.write_rejected]
";
    let lock = "{ backend: redis, ttl: 1s }";
    let tried = Tried::new("killed-resource", "redis", lock, body);
    tried.run(&[]).expect_code(0);
    let notes = json(&tried.case("fenced").join("case.json"));
    assert_eq!(notes["stale_rejections_metric"], 1);
}

#[test]
fn data_is_not_called_kept_that_was_lost() {
    let _turn = docker_shared();
    let body = "\
workers:
  a: { key: k, gate: before_write }
timeline:
  - { when: a.at_gate, do: { restart: redis } }
cases:
  fenced: { fence: on, expect: { violations: 0 } }
";
    let lock = "{ backend: redis, ttl: 10s }";
    let tried = Tried::new("volatile", "redis", lock, body);
    tried
        .run(&[])
        .expect_code(2)
        .expect_said(&["restart of redis: it has lost its data", "`restart-empty`"]);
}
