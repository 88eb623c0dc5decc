use super::*;
use nix::sys::signal::Signal;

/// Everything that has to be undone in containers that stay.
const ALL_AT_ONCE: &str = "\
workers:
  a: { key: k, gate: before_write }
timeline:
  - when: a.at_gate
    name: all
    do:
      - { latency: a -> resource, delay: 500ms }
      - { skew: redis, by: 15s }
      - { drop: resource }
      - { freeze: redis, for: 60s }
cases:
  fenced: { fence: on, expect: { violations: 0 } }
deadline: 2m
";

#[test]
fn ctrl_c_in_the_middle_of_everything_heals_and_removes_all() {
    let _turn = docker_shared();
    let lock = "{ backend: redis, ttl: 30s }";
    let tried = Tried::new("interrupted-faults", "redis", lock, ALL_AT_ONCE);
    let run = start(command(tried.arguments(&[])));
    await_frozen(&tried);
    run.signal(Signal::SIGINT);
    let ended = run.wait().expect_code(130);
    assert_eq!(owned_by(ended.pid), [""; 0]);
    let healed = |row: &&Value| row["stage"] == "healed";
    let faults = tried.faults("fenced");
    assert_eq!(faults.iter().filter(healed).count(), 4, "{faults:#?}");
}

#[test]
fn the_next_run_heals_what_a_killed_one_was_to_keep() {
    let _turn = docker_alone();
    let lock = "{ backend: redis, ttl: 30s }";
    let tried = Tried::new("killed-faults", "redis", lock, ALL_AT_ONCE);
    let run = start(command(tried.arguments(&["--keep"])));
    await_frozen(&tried);
    run.signal(Signal::SIGKILL);
    let dead = run.wait().pid;
    let left = owned_by(dead);
    let named = |suffix: &str| {
        let found = left.iter().find(|name| name.ends_with(suffix));
        found.cloned().unwrap_or_else(|| panic!("{left:?}"))
    };
    let redis = named("-redis");
    let paused = ["inspect", "-f", "{{.State.Paused}}", &redis];
    assert_eq!(docker_ok(&paused), "true");

    // A run heals before it looks at anything else.
    let nowhere = ["run", SCENARIO, "--results", "/dev/null/x"];
    fencepost(&nowhere).expect_code(70);
    assert_eq!(
        docker_ok(&paused),
        "true",
        "and not before it knows that it can run"
    );
    let results = fresh_folder("after-killed-faults");
    let results = results.to_str().expect("a plain path");
    let next = fencepost(&["run", SCENARIO, "--case", "fenced", "--results", results]);
    let next = next.expect_code(0);
    for healed in [
        "thawed redis",
        "put the clock of redis right",
        "cleared the packet filter of resource",
        "healed the links of a",
    ] {
        assert!(next.stderr.contains(healed), "{next}");
    }
    assert_eq!(docker_ok(&paused), "false");
    let time = docker_ok(&["exec", &redis, "redis-cli", "time"]);
    let theirs: i64 = time.lines().next().unwrap().parse().unwrap();
    let ours = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let ours = ours.unwrap().as_secs() as i64;
    assert!((theirs - ours).abs() <= 2, "{theirs} and {ours}");
    fencepost(&["clean"]).expect_cleaned();
    assert_eq!(owned_by(dead), [""; 0]);
}

fn await_frozen(tried: &Tried) {
    let faults = tried.case("fenced").join("faults.jsonl");
    await_row(&faults, |row| {
        row["fault"] == "freeze" && row["stage"] == "observed"
    });
}
