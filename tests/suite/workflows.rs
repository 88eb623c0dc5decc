//! The workflows of CI call what there is, keep the exit code, and post what was written.

use crate::support::*;
use serde_yaml::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

fn workflow(name: &str) -> Value {
    let path = project().join(".github/workflows").join(name);
    let text = fs::read_to_string(&path).expect("a workflow");
    serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn steps(workflow: &Value) -> Vec<Value> {
    let jobs = workflow["jobs"].as_mapping().expect("jobs");
    let jobs = jobs.values();
    jobs.flat_map(|job| job["steps"].as_sequence().cloned().unwrap_or_default())
        .collect()
}

fn runs(step: &Value) -> &str {
    step["run"].as_str().unwrap_or_default()
}

/// The step whose script holds a text.
fn step_with(workflow: &Value, text: &str) -> Value {
    let all = steps(workflow);
    let found = all.iter().find(|step| runs(step).contains(text));
    found
        .unwrap_or_else(|| panic!("no step has {text}"))
        .clone()
}

/// As GitHub runs a step.
#[track_caller]
fn run(script: &str, folder: &Path, summary: &Path) {
    let ended = Command::new("bash")
        .args(["-e", "-o", "pipefail", "-c", script])
        .current_dir(folder)
        .env("GITHUB_STEP_SUMMARY", summary)
        .output()
        .expect("bash");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{script}\n{said}");
}

#[test]
fn every_workflow_has_few_rights_and_an_end() {
    for name in ["nightly.yml", "ci.yml"] {
        let workflow = workflow(name);
        assert_eq!(
            workflow["permissions"]["contents"],
            Value::from("read"),
            "{name}"
        );
        assert_eq!(
            workflow["permissions"].as_mapping().map(|all| all.len()),
            Some(1)
        );
        for job in workflow["jobs"].as_mapping().expect("jobs").values() {
            assert!(job["timeout-minutes"].is_u64(), "{name}");
        }
    }
}

#[test]
fn the_commands_that_are_called_exist() {
    let night = step_with(&workflow("nightly.yml"), "cargo run --release -- ");
    let (_, command) = runs(&night).split_once("-- ").expect("a command");
    let command = command.replace("\"$REPEAT\"", "2");
    let words: Vec<&str> = command.split_whitespace().collect();
    // Whatever its options are, they are understood: help is asked for after them.
    let help = offline(&[&words[..], &["--help"]].concat()).expect_code(0);
    help.expect_said(&[
        "results/summary.md",
        "results/junit.xml",
        "results/index.html",
    ]);
    // The exit code of the night is that of the job.
    assert!(night["continue-on-error"].is_null() && night["if"].is_null());

    let ci = step_with(&workflow("ci.yml"), ".ci/run");
    let explore = step_with(&workflow("nightly.yml"), ".ci/explore");
    for step in [ci, explore] {
        let script = runs(&step).split_whitespace().next().expect("a script");
        let script = fs::metadata(project().join(script)).expect("the script");
        assert_ne!(script.permissions().mode() & 0o111, 0, "it can be executed");
    }
}

/// Runs `.ci/explore` with a cargo that ends badly for this lock; returns the exit code, and what
/// it called.
fn explored_by_ci(bad: &str) -> (Option<i32>, Vec<String>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let calls = folder.path().join("calls");
    let cargo = format!(
        "#!/bin/sh\necho \"$*\" >> {}\ncase \"$*\" in *{bad}*) exit 1 ;; esac\n",
        calls.display()
    );
    let script = project().join(".ci/explore");
    let ended = with_cargo(
        folder.path(),
        &cargo,
        Command::new(script).args(["4m", "4711"]),
    );
    let calls = fs::read_to_string(calls).expect("calls");
    (
        ended.status.code(),
        calls.lines().map(str::to_owned).collect(),
    )
}

#[test]
fn a_night_searches_every_lock_with_another_seed_and_ends_badly_if_one_is_bad() {
    assert_eq!(explored_by_ci("nobody").0, Some(0));
    let (code, calls) = explored_by_ci("wait=notify");
    assert_eq!((code, calls.len()), (Some(1), 6), "{calls:?}");
    for (call, seed) in calls.iter().zip(4711..) {
        let words: Vec<&str> = call.split_whitespace().collect();
        let at = words.iter().position(|word| *word == "--").expect("--");
        assert!(call.contains(&format!("--for 4m --seed {seed} ")), "{call}");
        // Whatever its options are, they are understood.
        offline(&[&words[at + 1..], &["--help"]].concat()).expect_code(0);
    }
}

#[test]
fn what_was_written_is_posted_and_uploaded_also_after_a_bad_night() {
    let night = workflow("nightly.yml");
    let is_about = |step: &&Value, name: &str| {
        step["uses"]
            .as_str()
            .is_some_and(|uses| uses.starts_with(name))
    };
    let all = steps(&night);
    let upload = all
        .iter()
        .find(|step| is_about(step, "actions/upload-artifact@"));
    let upload = upload.expect("an upload");
    let post = step_with(&night, "GITHUB_STEP_SUMMARY");
    for step in [upload, &post] {
        assert_eq!(step["if"], Value::from("always()"));
    }
    let paths = upload["with"]["path"].as_str().expect("paths");
    assert!(paths.lines().any(|line| line == "results"), "{paths}");

    let folder = tempfile::tempdir().expect("a temporary folder");
    let summary = folder.path().join("page.md");
    fs::write(&summary, "before\n").expect("a file");
    run(runs(&post), folder.path(), &summary);
    fs::create_dir(folder.path().join("results")).expect("a folder");
    fs::write(folder.path().join("results/summary.md"), "verdicts\n").expect("a file");
    run(runs(&post), folder.path(), &summary);
    let posted = fs::read_to_string(&summary).expect("a page");
    assert_eq!(posted, "before\nverdicts\n");
}

#[test]
fn a_night_that_could_not_begin_does_not_lose_the_history() {
    let night = workflow("nightly.yml");
    let all = steps(&night);
    let position = |is_it: &dyn Fn(&Value) -> bool| all.iter().position(is_it).expect("a step");
    let uses = |step: &Value, name: &str| {
        let uses = step["uses"].as_str();
        uses.is_some_and(|uses| uses.starts_with(name))
    };
    let unpack = position(&|step| runs(step).contains("tar -xzf"));
    assert!(unpack < position(&|step| runs(step).contains("apt-get")));
    assert_eq!(all[unpack]["id"], Value::from("unpack"));
    let pack = position(&|step| runs(step).contains("tar --null"));
    assert_eq!(all[pack]["id"], Value::from("pack"));
    let save = position(&|step| uses(step, "actions/cache/save@"));
    let conditions = [(pack, "unpack"), (save, "pack")];
    for (step, before) in conditions {
        let condition = format!("always() && steps.{before}.outcome == 'success'");
        assert_eq!(all[step]["if"], Value::from(condition));
    }
    let key = all[save]["with"]["key"].as_str().expect("a key");
    assert!(key.contains("github.run_attempt"), "{key}");
}

#[test]
fn the_history_of_earlier_nights_comes_back_for_the_overview() {
    let night = workflow("nightly.yml");
    let (pack, unpack) = (
        step_with(&night, "tar --null"),
        step_with(&night, "tar -xzf"),
    );
    let (old, new) = (Results::new(), Results::new());
    // The folders that the job works in have results/ in them.
    let places = [&old, &new].map(|results| Path::new(results.path()));
    let summary = old.write("page.md", "");
    // A first night that could not run has nothing to pack.
    run(runs(&pack), places[0], Path::new(&summary));
    let run_of = "results/pause-gt-ttl/20261113T020000.000Z-1";
    old.write(&format!("{run_of}/result.json"), good().to_string());
    old.write(&format!("{run_of}/fenced/history.jsonl"), "");
    old.write(
        "results/baseline/pause-gt-ttl/result.json",
        good().to_string(),
    );
    let latest = places[0].join("results/pause-gt-ttl/latest");
    std::os::unix::fs::symlink("20261113T020000.000Z-1", latest).expect("a link");
    run(runs(&pack), places[0], Path::new(&summary));
    run(runs(&unpack), places[1], Path::new(&summary));
    fs::copy(
        places[0].join("history.tar.gz"),
        places[1].join("history.tar.gz"),
    )
    .expect("a copy");
    run(runs(&unpack), places[1], Path::new(&summary));
    let came = places[1].join("results");
    assert_eq!(json(&places[1].join(run_of).join("result.json")), good());
    assert!(
        !came.join("pause-gt-ttl/latest").exists(),
        "the next run makes that link"
    );
    assert!(
        !came.join("baseline").exists(),
        "that comes with the sources"
    );
    let came = came.to_str().expect("a plain path");
    offline(&["report", "--index", came]).expect_code(0);
}

/// Runs a command that finds this script in the place of cargo.
fn with_cargo(folder: &Path, cargo: &str, command: &mut Command) -> Output {
    let path = folder.join("cargo");
    fs::write(&path, cargo).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a script to run");
    let paths = std::env::var("PATH").expect("a PATH");
    let paths = format!("{}:{paths}", folder.display());
    command.env("PATH", paths).output().expect("bash")
}

/// Runs `.ci/run` with a cargo whose tests end like this: first all of them, then those that are
/// run again.
fn ci_with(first: &[&str], again: &str) -> (bool, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let failed: String = first.iter().map(|name| format!("    {name}\n")).collect();
    let cargo = format!(
        "#!/bin/sh\ncase \"$*\" in\n*--exact*) printf '{again}' ;;\n\
         test*) printf 'failures:\n{failed}\n'; exit {} ;;\nesac\n",
        if first.is_empty() { 0 } else { 101 }
    );
    let script = project().join(".ci/run");
    let ended = with_cargo(folder.path(), &cargo, Command::new("bash").arg(script));
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    (ended.status.success(), said)
}

#[test]
fn ci_runs_a_test_that_failed_once_more_and_names_it() {
    assert!(ci_with(&[], "").0);
    let passed = "test library::a_storm ... ok\n";
    let (is_good, said) = ci_with(&["library::a_storm"], passed);
    assert!(
        is_good && said.ends_with("FLAKY: library::a_storm\n"),
        "{said}"
    );
    // It fails again, or is not found, or more failed than chance explains.
    let (is_good, said) = ci_with(&["library::a_storm"], "test library::a_storm ... FAILED\n");
    assert!(!is_good, "{said}");
    assert!(!ci_with(&["library::a_storm", "library::another"], passed).0);
    assert!(!ci_with(&["a::b", "a::c", "a::d"], passed).0);
}
