use super::*;
use std::sync::atomic::{AtomicU32, Ordering};

fn run_of(local: &Local, scenario: &str, more: &[&str]) -> Command {
    static COUNT: AtomicU32 = AtomicU32::new(1);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let results = fresh_folder(&format!("local-bad-{number}-{scenario}"));
    let folder = results.to_str().expect("a plain path").to_owned();
    let mut command = local.command(["run", scenario, "--results", &folder]);
    command.args(more);
    command
}

#[test]
fn a_program_that_is_missing_or_too_old_is_named_with_the_remedy() {
    let local = local();
    let too_old = local.script("old-redis", "echo 'Redis server v=5.0.3 sha=0:0'");
    let silent = local.script("silent-redis", "exit 1");
    for (setting, path, says) in [
        (
            "FENCEPOST_REDIS_SERVER",
            Path::new("/nonexistent"),
            "No such file",
        ),
        ("FENCEPOST_REDIS_SERVER", &too_old, "old-redis is 5.0.3"),
        ("FENCEPOST_REDIS_SERVER", &silent, "silent-redis says \"\""),
    ] {
        let mut run = run_of(&local, SCENARIO, &["--runtime", "local"]);
        let ended = start({
            run.env(setting, path);
            run
        });
        ended
            .wait()
            .expect_code(69)
            .expect_short_error(2)
            .expect_said(&[
                says,
                "redis-server 7.0 or newer",
                "apt-get install redis-server",
            ]);
    }
    let mut run = run_of(&local, "pause-gt-ttl-etcd", &["--runtime", "local"]);
    run.env("FENCEPOST_ETCD", "/nonexistent");
    let ended = start(run).wait().expect_code(69);
    ended.expect_said(&["etcd 3.4 or newer", "apt-get install etcd-server"]);
}

#[test]
fn a_missing_program_holds_up_only_those_that_need_it() {
    let local = local();
    let results = fresh_folder("local-one-missing");
    let folder = results.to_str().expect("a plain path");
    let scenarios = [SCENARIO, "pause-gt-ttl-etcd"];
    let mut run = local.command([&["run"], &scenarios[..], &["--runtime", "local"]].concat());
    run.args(["--results", folder]);
    run.env("FENCEPOST_ETCD", "/nonexistent");
    let ended = start(run).wait_within(FIVE_MINUTES).expect_code(2);
    let says = "etcd 3.4 or newer (/nonexistent: No such file";
    ended.expect_said(&["cannot be done here: etcd", says]);
    assert_eq!(stable(&results, scenarios[0])["verdict"], "as_expected");
    assert_eq!(stable(&results, scenarios[1])["verdict"], "inconclusive");
}

#[test]
fn the_doctor_says_what_local_runs_need() {
    let local = local();
    let mut doctor = local.command(["doctor"]);
    doctor.env("FENCEPOST_ETCD", "/nonexistent");
    let said = start(doctor).wait().expect_code(69);
    said.expect_said(&[
        "ok      redis-server ",
        "hint    for --runtime local only: etcd 3.4 or newer",
        "MISSING Docker does not answer",
    ]);
    let doctor = local.start(&["doctor"]).wait().expect_code(0);
    doctor.expect_said(&["hint    Docker does not answer", "runs use local processes"]);
    let mut in_ci = local.command(["doctor"]);
    in_ci.env("CI", "true");
    start(in_ci).wait().expect_code(69);
}

#[test]
fn auto_falls_back_with_a_line_and_never_in_ci() {
    let local = local();
    let case = ["--case", "fenced"];
    let ended = start(run_of(&local, SCENARIO, &case)).wait();
    ended.expect_code(0).expect_said(&[
        "Docker does not answer at unix:///nonexistent.sock (",
        "); running on local processes",
    ]);
    let mut in_ci = run_of(&local, SCENARIO, &case);
    in_ci.env("CI", "true");
    let ended = start(in_ci).wait().expect_code(69);
    ended.expect_said(&["Docker does not answer", "start the Docker Engine"]);
    let explicit = run_of(&local, SCENARIO, &["--runtime", "docker"]);
    start(explicit).wait().expect_code(69);
}

#[test]
fn what_takes_a_container_is_said_before_anything_starts() {
    let head = "\
topology: etcd
lock: { backend: etcd, ttl: 4s }
workers:
  a: { key: k, gate: before_write }
timeline:
  - { when: a.at_gate, do: ";
    let tail = " }
cases:
  fenced: { fence: on, expect: { violations: 0 } }
";
    for (name, fault, says) in [
        (
            "freeze",
            "{ freeze: a, for: 1s }",
            "freeze of a: only a container can be frozen",
        ),
        (
            "disconnect",
            "{ disconnect: etcd-1, for: 1s }",
            "disconnect of etcd-1: only a container can be taken off the network",
        ),
        (
            "drop",
            "{ drop: etcd-1, for: 1s }",
            "drop of etcd-1: only a container's packets can be lost",
        ),
        (
            "peers",
            "{ isolate: etcd-1, for: 1s }",
            "isolate of etcd-1: without containers no proxy can stand between etcd-1 and the others",
        ),
    ] {
        let tried = Tried::new(name, &format!("{head}{fault}{tail}"));
        let says = format!("cannot be done here: {says}");
        let ended = tried.run().expect_code(2);
        let ended = ended.expect_said(&[&says, "use --runtime docker"]);
        // Nothing was counted, so there are no numbers to compare.
        assert!(!ended.stdout.contains("violations 0"), "{ended}");
        assert!(!ended.stdout.contains("was expected"), "{ended}");
        assert!(rows(&tried.case("fenced").join("history.jsonl")).is_empty());
        assert!(!tried.case("fenced").join("logs/etcd-1.log").exists());
    }
}

#[test]
fn a_worker_in_an_image_of_its_own_takes_a_container() {
    let body = "\
topology: redis
worker: { image: 'somebody/worker:1' }
lock: { backend: redis, ttl: 4s }
workers:
  a: { key: k }
cases:
  fenced: { fence: on, expect: { violations: 0 } }
";
    let tried = Tried::new("image", body);
    let says = "cannot be done here: a: its image somebody/worker:1 takes a container";
    tried.run().expect_code(2).expect_said(&[says]);
}

/// The first line of a worker says what it can do, and nothing is started for anything else.
#[test]
fn a_task_that_a_worker_refuses_is_said_before_anything_starts() {
    let only = r#""event": "ready", "lacks": [], "only": {"FENCEPOST_RENEW": ["false"]}"#;
    let refused = r#""event": "refused", "reason": "only on Tuesdays""#;
    for (name, first_line, says) in [
        (
            "only",
            only,
            "worker b refuses its task: this worker has FENCEPOST_RENEW=false alone, and not true",
        ),
        (
            "refused",
            refused,
            "worker a refuses its task: only on Tuesdays",
        ),
    ] {
        let body = format!(
            "\
topology: redis
worker: {{ command: [sh, -c, 'echo ''{{\"at_ns\": 1, {first_line}}}''; cat'] }}
lock: {{ backend: redis, ttl: 4s }}
workers:
  a: {{ key: k }}
  b: {{ key: k, renew: true }}
cases:
  fenced: {{ fence: on, expect: {{ violations: 0 }} }}
"
        );
        let tried = Tried::new(name, &body);
        let says = format!("cannot be done here: {says}");
        tried.run().expect_code(2).expect_said(&[&says]);
        let log = tried.case("fenced").join("logs/redis.log");
        assert!(!log.exists(), "{name}");
    }
}

/// It is the port of a container; a process gets one that is free.
#[test]
fn a_port_that_somebody_has_holds_up_nobody() {
    let body = "\
topology: redis
lock: { backend: redis, ttl: 4s }
workers:
  a: { key: k }
cases:
  fenced: { fence: on, expect: { violations: 0 } }
";
    let tried = Tried::new("port", body);
    let somebody = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = somebody.local_addr().expect("bound").port();
    let fixed = format!("127.0.0.1:{port}:6379");
    tried
        .home
        .replace("compose/redis.yml", "127.0.0.1::6379", &fixed);
    tried.run().expect_code(0);
}

#[test]
fn a_server_that_ends_at_once_is_shown_with_its_last_words() {
    let body = "\
topology: redis
lock: { backend: redis, ttl: 4s }
workers:
  a: { key: k }
cases:
  fenced: { fence: on, expect: { violations: 0 } }
";
    let tried = Tried::new("dead-server", body);
    let command = "--port, \"6379\", --nonsense, \"1\"";
    tried
        .home
        .replace("compose/redis.yml", "--port, \"6379\"", command);
    let ended = tried.run().expect_code(70);
    ended.expect_said(&["redis did not get ready: its process ended", "nonsense"]);
    assert_eq!(tried.local.left(), [""; 0]);
}
