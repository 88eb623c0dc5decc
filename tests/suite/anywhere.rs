//! One file that works in any folder: what is built in, and what somebody adds to it.

use crate::support::{Ended, command, docker_shared, local, project, start};
use std::fs;
use tempfile::TempDir;

/// Somebody's repository, which is not a checkout of ours.
struct Elsewhere(TempDir);

impl Elsewhere {
    fn new() -> Elsewhere {
        Elsewhere(tempfile::tempdir().expect("a temporary folder"))
    }

    fn path(&self, inside: &str) -> std::path::PathBuf {
        self.0.path().join(inside)
    }

    fn write(&self, inside: &str, text: &str) {
        let path = self.path(inside);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder of our own");
        fs::write(path, text).expect("a temporary file");
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        self.run_in("", arguments)
    }

    fn run_in(&self, folder: &str, arguments: &[&str]) -> Ended {
        let mut command = command(arguments);
        command.current_dir(self.path(folder));
        start(command).wait()
    }

    fn offline(&self, arguments: &[&str]) -> Ended {
        let mut command = command(arguments);
        command.current_dir(self.0.path());
        command.env("DOCKER_HOST", "unix:///nonexistent.sock");
        start(command).wait()
    }
}

fn shipped(path: &str) -> String {
    fs::read_to_string(project().join(path)).expect("it is in the project")
}

/// Returns the shipped pause-gt-ttl under another name.
fn renamed(name: &str) -> String {
    let text = shipped("scenarios/pause-gt-ttl.yml");
    text.replace("name: pause-gt-ttl", &format!("name: {name}"))
}

#[test]
fn an_empty_folder_has_everything_that_is_built_in() {
    let here = Elsewhere::new();
    for (arguments, said) in [
        (&["list"][..], "pause-gt-ttl  (unfenced, fenced)"),
        (&["plan", "pause-gt-ttl"], "start redis, resource"),
        (&["validate"], "builtin:scenarios/pause-gt-ttl.yml: ok"),
        (&["schema"], "$schema"),
        (&["completions", "bash"], "pause-gt-ttl"),
    ] {
        let ended = here.offline(arguments).expect_code(0);
        assert!(ended.stdout.contains(said), "{ended}");
    }
    here.offline(&["run", "pause-gt-tll"])
        .expect_code(64)
        .expect_said(&["builtin:scenarios", "did you mean `pause-gt-ttl`?"]);
    here.write("mine.yml", &renamed("mine"));
    let ended = here.offline(&["validate", "mine.yml"]).expect_code(0);
    assert!(
        ended.stdout.contains("mine.yml: ok (a scenario)"),
        "{ended}"
    );
    assert!(!here.path("fencepost").exists(), "looking writes nothing");
}

#[test]
fn a_run_in_an_empty_folder_leaves_its_results_there() {
    let _turn = docker_shared();
    let here = Elsewhere::new();
    here.run(&["run", "pause-gt-ttl", "--case", "fenced"])
        .expect_code(0)
        .expect_cleaned();
    let results = here.path("fencepost/results/pause-gt-ttl/latest");
    assert!(results.join("result.json").is_file());
    fs::create_dir(here.path("below")).expect("a folder of our own");
    let again = "../fencepost/results/pause-gt-ttl/latest";
    here.run_in("below", &["check", again]).expect_code(0);
    here.run_in("below", &["diff", "pause-gt-ttl", "pause-gt-ttl"])
        .expect_code(0);
}

#[test]
fn own_files_are_beside_the_built_in_ones_and_count_first() {
    let here = Elsewhere::new();
    here.write("fencepost/scenarios/mine.yml", &renamed("mine"));
    let about = |ended: &Ended, name: &str| {
        let mut lines = ended.stdout.lines();
        lines.find(|line| line.starts_with(&format!("{name}  ")));
        lines.next().unwrap_or_default().trim().to_owned()
    };
    let before = here.offline(&["list"]).expect_code(0);
    assert!(!about(&before, "mine").is_empty(), "{before}");
    let built_in = about(&before, "pause-gt-ttl");
    assert!(built_in.starts_with("A holder that is stopped"), "{before}");

    here.offline(&["eject", "pause-gt-ttl"]).expect_code(0);
    let copy = "fencepost/scenarios/pause-gt-ttl.yml";
    let text = fs::read_to_string(here.path(copy)).expect("it was copied");
    assert_eq!(text, shipped("scenarios/pause-gt-ttl.yml"));
    here.write(
        copy,
        &text.replace("A holder that is stopped", "My holder that is stopped"),
    );
    let after = here.offline(&["list"]).expect_code(0);
    let own = about(&after, "pause-gt-ttl");
    assert!(own.starts_with("My holder that is stopped"), "{after}");
    assert_eq!(before.stdout.lines().count(), after.stdout.lines().count());
    // A folder below finds them, too.
    fs::create_dir_all(here.path("src/deep")).expect("a folder of our own");
    let deep = here.run_in("src/deep", &["plan", "mine"]).expect_code(0);
    assert!(deep.stdout.starts_with("mine\n"), "{deep}");
}

#[test]
fn what_is_copied_out_is_whole_and_never_overwrites() {
    let here = Elsewhere::new();
    here.offline(&["eject", "redis"]).expect_code(0);
    // Its image is built from the recipe that is built in.
    here.offline(&["validate", "fencepost/compose/redis.yml"])
        .expect_code(0);
    here.offline(&["eject", "compose/images/redis"])
        .expect_code(0);
    assert!(
        here.path("fencepost/compose/images/redis/Dockerfile")
            .is_file()
    );
    let copy = "fencepost/compose/redis.yml";
    here.write(copy, "mine");
    for name in ["redis", "compose/redis.yml", "compose/"] {
        here.offline(&["eject", name])
            .expect_code(64)
            .expect_said(&["is there already; move it away first"]);
    }
    assert_eq!(
        fs::read_to_string(here.path(copy)).expect("it is there"),
        "mine"
    );
    assert!(
        !here.path("fencepost/compose/etcd.yml").exists(),
        "all or none"
    );
    for (name, said) in [
        ("mariadb-wait-timeout", "both a scenario and a topology"),
        ("pause-gt-tll", "did you mean `pause-gt-ttl`?"),
        ("../../etc/passwd", "nothing built in is called so"),
        ("/etc/passwd", "nothing built in is called so"),
    ] {
        here.offline(&["eject", name])
            .expect_code(64)
            .expect_said(&[said]);
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let here = Elsewhere::new();
    here.write("fencepost", "a file in the place of the folder");
    here.offline(&["eject", "redis"])
        .expect_code(70)
        .expect_said(&["cannot write fencepost/compose/redis.yml"]);
}

#[test]
fn a_checkout_of_ours_beside_the_folder_is_not_taken_for_own_files() {
    let here = Elsewhere::new();
    for part in ["scenarios", "compose", "toxiproxy"] {
        fs::create_dir_all(here.path("fencepost").join(part)).expect("a folder of our own");
    }
    let listed = here.offline(&["list"]).expect_code(0);
    assert!(listed.stdout.contains("pause-gt-ttl"), "{listed}");
    // Inside of it nothing else counts.
    let ended = here.run_in("fencepost", &["list"]).expect_code(0);
    assert_eq!(ended.stdout, "");
}

/// A scenario can hold a command, so a folder above that somebody else made does not count.
#[test]
fn the_files_of_somebody_else_count_only_if_they_are_asked_for() {
    let here = Elsewhere::new();
    here.write("fencepost/scenarios/theirs.yml", &renamed("theirs"));
    fs::create_dir(here.path("mine")).expect("a folder of our own");
    let listed = here.run_in("mine", &["list"]).expect_code(0).stdout;
    assert!(listed.contains("theirs"), "{listed}");
    // Only root can give a folder away.
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let nobody = nix::unistd::Uid::from_raw(65_534);
    nix::unistd::chown(&here.path("fencepost"), Some(nobody), None).expect("to give it away");
    let listed = here.run_in("mine", &["list"]).expect_code(0).stdout;
    assert!(!listed.contains("theirs"), "{listed}");
    let asked = here.run_in("mine", &["list", "--home", "../fencepost"]);
    asked.expect_code(0).expect_said(&["theirs"]);
}

#[test]
fn the_first_files_go_to_the_folder_that_is_given() {
    let here = Elsewhere::new();
    let init = [
        "init",
        "--language",
        "python",
        "--no-run",
        "--home",
        "./locks",
    ];
    here.offline(&init).expect_code(0);
    let files = [
        "scenarios/my-lock.yml",
        "my-lock.md",
        "my-lock/redis_lock.py",
    ];
    for file in files {
        assert!(here.path("locks").join(file).is_file(), "{file}");
    }
    let read = fs::read_to_string(here.path("locks/my-lock.md")).expect("a page");
    assert!(
        read.contains("fencepost try --home ./locks/ ./locks/my-lock`"),
        "{read}"
    );
    here.offline(&["list", "--home", "./locks"])
        .expect_code(0)
        .expect_said(&["my-lock"]);
    here.offline(&["init", "--language", "python", "--name", "a-", "--no-run"])
        .expect_code(64)
        .expect_said(&["does not end with a dash"]);
}

#[test]
fn a_worker_may_be_anywhere_and_gets_its_own_command_and_variables() {
    let _turn = docker_shared();
    let here = Elsewhere::new();
    let dockerfile = shipped("examples/redis-py-worker/Dockerfile");
    let copies = "COPY fencepost_kit.py worker.py /worker/";
    let dockerfile = dockerfile.replace(copies, "COPY src /src");
    assert!(dockerfile.contains("COPY src /src"), "{dockerfile}");
    here.write("locks/mine/Dockerfile", &dockerfile);
    let worker = shipped("examples/redis-py-worker/worker.py");
    let seen = "import os, sys; print('my variable is', os.environ['MINE'], file=sys.stderr)\n";
    here.write("locks/mine/src/deep/worker.py", &worker);
    let kit = shipped("kits/python/fencepost_kit.py");
    here.write("locks/mine/src/fencepost_kit.py", &kit);
    here.write(
        "locks/mine/src/start.py",
        &format!("{seen}sys.argv = ['worker.py']; exec(open('/src/deep/worker.py').read())\n"),
    );
    let worker = "worker:\n  image: ../../locks/mine\n  command: [python3, /src/start.py]\n  env: { MINE: 42 }\n";
    let text = renamed("mine").replace("\nworkers:", &format!("\n{worker}workers:"));
    here.write("fencepost/scenarios/mine.yml", &text);
    let arguments = [
        "run",
        "mine",
        "pause-gt-ttl",
        "--case",
        "fenced",
        "--case",
        "unfenced",
    ];
    here.run(&arguments).expect_code(0).expect_cleaned();
    // By name, from a folder below.
    here.run_in("locks", &["check", "mine"]).expect_code(0);
    here.run_in("locks", &["check", "pause-gt-tll"])
        .expect_code(64)
        .expect_said(&["no scenario with a run in", "fencepost/results"]);
    let without = text.replace("env: { MINE: 42 }", "env: { OTHER: 42 }");
    here.write("fencepost/scenarios/mine.yml", &without);
    here.run(&["run", "mine", "--case", "fenced"])
        .expect_code(2)
        .expect_said(&["ended before it was done"]);
}

#[test]
fn a_load_in_a_list_does_not_end_the_command() {
    let here = Elsewhere::new();
    here.write("w/Dockerfile", "FROM scratch");
    let set = ["--set", "worker.image=./w"];
    let run = |scenarios: &[&str]| {
        here.offline(&[&["run"], scenarios, &set, &["--runtime", "docker"]].concat())
    };
    // It comes as far as Docker, which is not there.
    run(&["pause-gt-ttl", "hot-key-fairness"])
        .expect_code(69)
        .expect_said(&["left out:", "hot-key-fairness", "which cannot be replaced"]);
    run(&["--all"]).expect_code(69);
    run(&["hot-key-fairness"]).expect_code(64);
}

#[test]
fn every_case_has_to_be_one_of_a_scenario() {
    let here = Elsewhere::new();
    for (arguments, said) in [
        (
            &["pause-gt-ttl", "--case", "fenced", "--case", "fencd"][..],
            "has no case `fencd`",
        ),
        (
            &["pause-gt-ttl", "healthy", "--case", "fenced"],
            "healthy has no case `fenced`",
        ),
        (
            &["pause-gt-ttl", "healthy", "--case", "x"],
            "have no case `x`",
        ),
    ] {
        here.offline(&[&["run"], arguments].concat())
            .expect_code(64)
            .expect_said(&[said]);
    }
}

#[test]
fn an_own_worker_is_a_process_where_there_are_no_containers() {
    let here = Elsewhere::new();
    let program = env!("CARGO_BIN_EXE_fencepost");
    let worker = format!("worker: {{ command: [{program}, worker] }}\n");
    let text = renamed("mine").replace("\nworkers:", &format!("\n{worker}workers:"));
    here.write("fencepost/scenarios/mine.yml", &text);
    let plan = here.offline(&["plan", "mine"]).expect_code(0);
    assert!(plan.stdout.contains("start the workers as `"), "{plan}");
    let local = local();
    let run = ["run", "mine", "--case", "fenced", "--runtime"];
    let mut command = local.command([&run[..], &["local"]].concat());
    command.current_dir(here.0.path());
    start(command).wait().expect_code(0);
    here.run(&[&run[..], &["docker"]].concat())
        .expect_code(2)
        .expect_said(&["does not run in a container"]);
}
