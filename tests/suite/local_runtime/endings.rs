use super::*;
use nix::sys::signal::Signal;

/// A run whose worker a stands still, for as long as anybody looks.
fn paused(local: &Local, name: &str) -> (Running, PathBuf) {
    let results = fresh_folder(name);
    let folder = results.to_str().expect("a plain path");
    let run = ["run", SCENARIO, "--case", "fenced", "--runtime", "local"];
    let slow = ["--set", "lock.ttl=40s", "--results", folder];
    let run = local.start(&[&run[..], &slow].concat());
    let case = results.join(SCENARIO).join("latest/fenced");
    await_row(&case.join("faults.jsonl"), |row| row["stage"] == "observed");
    (run, case)
}

#[test]
fn a_run_that_is_killed_takes_its_processes_along() {
    let local = local();
    let (run, case) = paused(&local, "local-killed");
    // Redis, resource, two workers and their proxies.
    assert_eq!(local.processes().len(), 6);
    run.signal(Signal::SIGKILL);
    assert_eq!(run.wait().code, None);
    until("the end of all processes", || {
        local.processes().is_empty().then_some(())
    });
    assert!(!rows(&case.join("history.jsonl")).is_empty());
    let left = local.folders();
    assert_eq!(left.len(), 1, "its folder is left");
    let results = fresh_folder("local-after-killed");
    let folder = results.to_str().expect("a plain path");
    let run = ["run", SCENARIO, "--case", "fenced", "--runtime", "local"];
    let next = local.start(&[&run[..], &["--results", folder]].concat());
    let removed = format!("removed {}, left behind by a run", left[0].display());
    next.wait().expect_code(0).expect_said(&[&removed]);
    assert_eq!(local.left(), [""; 0]);
}

#[test]
fn ctrl_c_heals_and_leaves_nothing() {
    let local = local();
    let (run, case) = paused(&local, "local-ctrl-c");
    run.signal(Signal::SIGINT);
    run.wait().expect_code(130);
    assert_eq!(local.left(), [""; 0]);
    let faults = rows(&case.join("faults.jsonl"));
    assert_eq!(faults.last().expect("rows")["stage"], "healed");
}

/// As a terminal does it: the signal goes to everybody in the foreground.
#[test]
fn ctrl_c_at_the_terminal_reaches_nobody_but_the_harness() {
    use std::os::unix::process::CommandExt;
    let local = local();
    let results = fresh_folder("local-group");
    let folder = results.to_str().expect("a plain path");
    let run = ["run", SCENARIO, "--case", "fenced", "--runtime", "local"];
    let slow = ["--set", "lock.ttl=40s", "--results", folder];
    let mut command = local.command([&run[..], &slow].concat());
    command.process_group(0);
    let run = start(command);
    let case = results.join(SCENARIO).join("latest/fenced");
    await_row(&case.join("faults.jsonl"), |row| row["stage"] == "observed");
    let group = nix::unistd::Pid::from_raw(run.pid as i32);
    nix::sys::signal::killpg(group, Signal::SIGINT).expect("it runs");
    run.wait().expect_code(130);
    let faults = rows(&case.join("faults.jsonl"));
    assert_eq!(faults.last().expect("rows")["stage"], "healed");
    assert_eq!(local.processes(), [0u32; 0]);
}

#[test]
fn what_is_kept_stays_until_clean_and_no_process_does() {
    let local = local();
    let results = fresh_folder("local-kept");
    let folder = results.to_str().expect("a plain path");
    let run = ["run", SCENARIO, "--case", "fenced", "--runtime", "local"];
    let kept = local.start(&[&run[..], &["--keep", "--results", folder]].concat());
    let kept = kept.wait().expect_code(0);
    kept.expect_said(&["data and logs in", "the processes have ended"]);
    assert_eq!(local.processes(), [0u32; 0]);
    assert!(local.folders()[0].join("nodes/redis/log").is_file());
    // Docker is not there, and what is local goes all the same.
    let clean = local.start(&["clean"]).wait().expect_code(0);
    clean.expect_said(&["removed ", "Docker was not looked at"]);
    assert_eq!(local.left(), [""; 0]);
}

/// A script that does not end with `exec` stays between us and the server.
fn wrapped(local: &Local) -> PathBuf {
    let server = local.redis_server().display();
    local.script("wrapped-redis", &format!("{server} \"$@\"\nexit $?\n"))
}

#[test]
fn what_a_script_has_started_does_not_outlive_the_next_sweep() {
    let local = local();
    let results = fresh_folder("local-wrapped-killed");
    let folder = results.to_str().expect("a plain path");
    let run = ["run", SCENARIO, "--case", "fenced", "--runtime", "local"];
    let slow = ["--set", "lock.ttl=40s", "--results", folder];
    let mut command = local.command([&run[..], &slow].concat());
    command.env("FENCEPOST_REDIS_SERVER", wrapped(&local));
    let run = start(command);
    let case = results.join(SCENARIO).join("latest/fenced");
    await_row(&case.join("faults.jsonl"), |row| row["stage"] == "observed");
    run.signal(Signal::SIGKILL);
    run.wait();
    until("the end of all that are our children", || {
        (local.processes().len() <= 1).then_some(())
    });
    let clean = local.start(&["clean"]).wait().expect_code(0);
    clean.expect_said(&["removed "]);
    assert_eq!(local.left(), [""; 0]);
}

/// The server stands still, and not only the script around it.
#[test]
fn a_pause_is_that_of_the_server() {
    let body = "\
topology: redis
lock: { backend: redis, ttl: 4s }
workers:
  a: { key: k, gate: before_write }
timeline:
  - { when: a.at_gate, do: { pause: redis, for: 40s } }
cases:
  fenced: { fence: on, expect: { violations: 0 } }
";
    let tried = Tried::new("wrapped-pause", body);
    let mut run = tried.command();
    run.env("FENCEPOST_REDIS_SERVER", wrapped(&tried.local));
    let run = start(run);
    let faults = tried.case("fenced").join("faults.jsonl");
    await_row(&faults, |row| row["stage"] == "observed");
    let all = tried.local.processes().into_iter();
    let of_servers: Vec<String> = all
        .map(|pid| std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default())
        .filter(|stat| stat.contains("redis") || stat.contains("ld-linux"))
        .collect();
    // The script and the server itself.
    assert_eq!(of_servers.len(), 2, "{of_servers:?}");
    assert!(
        of_servers.iter().all(|stat| stat.contains(") T ")),
        "{of_servers:?}"
    );
    run.signal(Signal::SIGINT);
    run.wait().expect_code(130);
    assert_eq!(tried.local.left(), [""; 0]);
}

#[test]
fn clocks_of_several_processes_are_left_alone_with_the_reason() {
    let body = "\
topology: redis
lock: { backend: redis, ttl: 4s }
workers:
  a: { key: k, gate: before_write }
timeline:
  - { when: a.at_gate, do: { skew: redis, by: 1s } }
cases:
  fenced: { fence: on, expect: { violations: 0 } }
";
    let tried = Tried::new("wrapped-skew", body);
    let mut run = tried.command();
    run.env("FENCEPOST_REDIS_SERVER", wrapped(&tried.local));
    let ended = start(run).wait().expect_code(2);
    ended.expect_said(&["has to end with `exec`"]);
}
