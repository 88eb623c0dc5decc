//! `fencepost try`: a good lock and broken ones, each on the kit for Python.

use crate::support::*;
use std::fs;
use std::path::Path;

const RELEASE: &str = "RELEASE = \"local o=redis.call('get',KEYS[1]) if o==ARGV[1] then redis.call('del',KEYS[1]) return 0 end return o and 2 or 1\"";

/// Copies the kit for Python, with one line of its lock replaced.
fn kit(into: &Path, line: &str, replaced: &str) {
    for file in ["fencepost_kit.py", "redis_lock.py"] {
        let text = fs::read_to_string(project().join("kits/python").join(file)).expect("a kit");
        let is_lock = file == "redis_lock.py";
        assert!(!is_lock || text.contains(line), "{line} is not in {file}");
        fs::write(into.join(file), text.replace(line, replaced)).expect("a temporary file");
    }
}

fn tried(folder: &Path, options: &[&str]) -> Ended {
    let local = local();
    let worker = ["python3", "redis_lock.py"];
    let mut command = local.command([&["try"], options, &worker].concat());
    command.current_dir(folder);
    start(command).wait()
}

#[test]
fn a_lock_that_compares_and_deletes_holds_what_is_required() {
    let here = tempfile::tempdir().expect("a temporary folder");
    kit(here.path(), RELEASE, RELEASE);
    let names = ["release", "token", "renews", "excludes-many"];
    let cases = names.iter().flat_map(|name| ["--case", name]);
    let more = [
        "--require",
        "release,token,renews,excludes",
        "--format",
        "json",
    ];
    let options: Vec<&str> = cases.chain(more).collect();
    let ended = tried(here.path(), &options).expect_code(0);
    let card: serde_json::Value = serde_json::from_str(&ended.stdout).expect("a document");
    let answers: Vec<_> = card["rows"].as_array().expect("rows").iter().collect();
    assert_eq!(answers.len(), 4, "{card:#}");
    let many = answers.iter().find(|row| row["name"] == "excludes-many");
    let many = many.expect("a row")["evidence"].to_string();
    assert!(many.contains("grants/s") && many.contains("Jain"), "{many}");
    assert!(answers.iter().all(|row| row["answer"] == "yes"), "{card:#}");
    let folder = card["folder"].as_str().expect("a folder");
    let page = fs::read_to_string(here.path().join(folder).join("scorecard.html"));
    assert!(
        page.expect("a page")
            .contains("a release frees its own hold alone")
    );
}

#[test]
fn a_release_without_a_look_frees_somebody_elses_lock() {
    let here = tempfile::tempdir().expect("a temporary folder");
    kit(
        here.path(),
        RELEASE,
        "RELEASE = \"redis.call('del',KEYS[1]) return 0\"",
    );
    let junit = here.path().join("junit.xml");
    let junit = junit.to_str().expect("a readable path");
    let options = ["--case", "release", "--junit", junit];
    let ended = tried(here.path(), &options).expect_code(1);
    ended.expect_said(&[
        "a release frees its own hold alone",
        "freed_another",
        "required and not met: release (no)",
        "again: fencepost try --case release python3 redis_lock.py",
    ]);
    let suites = fs::read_to_string(junit).expect("a file");
    assert!(suites.contains("failures=\"1\""), "{suites}");
}

#[test]
fn a_lock_that_grants_to_everybody_excludes_nobody() {
    let here = tempfile::tempdir().expect("a temporary folder");
    kit(here.path(), ",'NX','PX',", ",'PX',");
    let options = ["--case", "excludes-short", "--require", "excludes"];
    tried(here.path(), &options)
        .expect_code(1)
        .expect_said(&["required and not met: excludes-short (no)"]);
}

/// What a worker does not offer is said at once, and is a miss only where it is required.
#[test]
fn what_a_lock_does_not_offer_is_not_run() {
    let here = tempfile::tempdir().expect("a temporary folder");
    kit(here.path(), "    def renew(self):", "    def other(self):");
    let required = ["--require", "renews"];
    for (required, code) in [(&[][..], 0), (&required, 1)] {
        let options = [&["--case", "renews"], required].concat();
        let ended = tried(here.path(), &options).expect_code(code);
        ended.expect_said(&["not offered", "FENCEPOST_RENEW=false alone"]);
        assert!(!here.path().join("fencepost/results").exists());
    }
}

#[test]
fn a_trial_of_nothing_is_refused() {
    let here = tempfile::tempdir().expect("a temporary folder");
    kit(here.path(), RELEASE, RELEASE);
    for (options, said) in [
        (&["--case", "relase"][..], "did you mean `release`?"),
        (&["--require", "exclude"], "did you mean `excludes`?"),
        (
            &["--case", "order", "--require", "excludes"],
            "cannot require excludes: --case leaves it out",
        ),
    ] {
        tried(here.path(), options)
            .expect_code(64)
            .expect_said(&[said]);
    }
    fs::write(here.path().join("redis_lock.py"), "print('hello')").expect("a temporary file");
    tried(here.path(), &[])
        .expect_code(1)
        .expect_said(&["does not pass the check of the worker protocol"]);
}
