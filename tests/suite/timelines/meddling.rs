use super::*;

/// A fault is only as long as nobody else undoes it.
#[test]
fn a_fault_that_a_third_party_undoes_does_not_count() {
    let _turn = docker_shared();
    let lock = "{ backend: redis, ttl: 30s }";
    let body = "\
workers:
  a: { key: k, gate: before_write }
timeline:
  - when: a.at_gate
    do: [{ freeze: redis, for: 5s }, { wait: 10ms }]
cases:
  fenced: { fence: on, expect: { violations: 0 } }
";
    let tried = Tried::new("meddled", "redis", lock, body);
    let run = start(command(tried.arguments(&[])));
    let faults = tried.case("fenced").join("faults.jsonl");
    await_row(&faults, |row| row["stage"] == "observed");
    let mine = owned_by(run.pid);
    let redis = mine.iter().find(|name| name.ends_with("-redis"));
    docker_ok(&["unpause", redis.expect("a redis")]);
    let ended = run.wait().expect_code(2);
    ended.expect_said(&[
        "thaw of redis: it had not lasted",
        "somebody else has thawed it",
    ]);
}
