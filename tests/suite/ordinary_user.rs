//! Somebody who is not root and may use Docker: the processes of containers are
//! out of reach then, and everything goes through the engine.

use crate::support::*;
use nix::sys::signal::Signal;

/// One case of each scenario about clocks: a rate, a jump of the time of day, and
/// a jump of the monotonic clock, each proven and undone.
const CLOCKS: [(&str, &str); 3] = [
    ("clock-drift", "drift-beyond-it-fenced"),
    ("redlock-clock-jump", "fenced"),
    ("etcd-lease-clock", "fenced"),
];

#[test]
fn the_clock_scenarios_come_out_as_expected() {
    let _turn = docker_shared();
    let Some(user) = OrdinaryUser::with_docker() else {
        return;
    };
    for (scenario, case) in CLOCKS {
        let run = ["run", scenario, "--case", case, "--runtime", "docker"];
        let ended = start(user.command(run)).wait().expect_code(0);
        assert_eq!(owned_by(ended.pid), [""; 0]);
        let faults = user.path("results").join(scenario).join("latest");
        let faults = rows(&faults.join(case).join("faults.jsonl"));
        let healed = faults.iter().filter(|row| row["stage"] == "healed");
        let healed: Vec<&str> = healed.filter_map(|row| row["fault"].as_str()).collect();
        let clock = healed.iter().any(|fault| ["skew", "drift"].contains(fault));
        assert!(clock, "{scenario}: {faults:#?}");
    }
}

const SKEWED: &str = "\
name: skewed
about: A clock that is off when the run is killed.
topology: redis
lock: { backend: redis, ttl: 30s }
workers:
  a: { key: k, gate: before_write }
timeline:
  - { name: off, when: a.at_gate, do: { skew: redis, by: 15s } }
  - { when: off.began, do: { wait: a.done } }
cases:
  fenced: { fence: on, expect: { violations: 0 } }
deadline: 2m
";

#[test]
fn a_clock_that_a_killed_run_left_off_is_put_right() {
    let _turn = docker_alone();
    let Some(user) = OrdinaryUser::with_docker() else {
        return;
    };
    user.write("scenarios/skewed.yml", SKEWED);
    let run = start(user.command(["run", "skewed", "--runtime", "docker", "--keep"]));
    let case = user.path("results/skewed/latest/fenced");
    await_row(&case.join("faults.jsonl"), |row| {
        row["fault"] == "skew" && row["stage"] == "observed"
    });
    run.signal(Signal::SIGKILL);
    let dead = run.wait().pid;
    let left = owned_by(dead);
    let redis = left.iter().find(|name| name.ends_with("-redis"));
    let redis = redis.unwrap_or_else(|| panic!("{left:?}"));
    let seconds_ahead = || {
        let time = docker_ok(&["exec", redis, "redis-cli", "time"]);
        let theirs: i64 = time
            .lines()
            .next()
            .expect("a time")
            .parse()
            .expect("seconds");
        let ours = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        theirs - ours.expect("after 1970").as_secs() as i64
    };
    assert!((13..=17).contains(&seconds_ahead()), "it is still off");

    let next = ["run", SCENARIO, "--case", "fenced", "--runtime", "docker"];
    let next = start(user.command(next)).wait().expect_code(0);
    let next = next.expect_said(&["put the clock of redis right"]);
    assert!((-2..=2).contains(&seconds_ahead()), "{next}");
    start(user.command(["clean"])).wait().expect_cleaned();
    assert_eq!(owned_by(dead), [""; 0]);
}
