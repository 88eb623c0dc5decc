//! A record may hold anything: keys, owners, errors and details that a stranger's worker made up. All of it is
//! shown, and none of it reaches a terminal, a page or a document as control characters or markup.

use crate::support::*;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// What a terminal would do something about, and what a page or an XML parser would.
const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}<script>alert(1)</script>]]>\u{9b}31m\u{202e}\u{2028}\r\nforged: as expected";

#[test]
fn a_hostile_record_is_judged_and_shown_harmlessly() {
    let run = Run::with_hostile_text();
    for arguments in [
        ["check", run.path()].as_slice(),
        &["check", run.path(), "--all"],
        &["check", run.path(), "--format", "json"],
        &["report", run.path()],
        &["report", run.path(), "--format", "json"],
    ] {
        let mut command = command(arguments);
        command.env("CLICOLOR_FORCE", "1");
        let ended = start(command).wait();
        assert!(matches!(ended.code, Some(0..=2)), "{ended}");
        expect_harmless(&without_colours(&ended.stdout));
        expect_harmless(&ended.stderr);
    }
    let page = fs::read_to_string(run.file("report.html")).expect("a page");
    expect_harmless(&page);
    assert_eq!(page.matches("<script>").count(), 1, "the page's own");
    assert!(page.contains("\\x1b[2J"), "it is shown");
}

#[test]
fn hostile_results_are_compared_and_listed_harmlessly() {
    let run = Run::with_hostile_text();
    let good = project().join("tests/results/pause-gt-ttl/good");
    let good = good.to_str().expect("a plain path");
    for format in ["human", "markdown", "json"] {
        let ended = offline(&["diff", good, run.path(), "--format", format, "--all"]);
        assert!(matches!(ended.code, Some(0..=1)), "{ended}");
        expect_harmless(&ended.stdout);
        let has_markup = ended.stdout.contains("<script>");
        assert!(format != "markdown" || !has_markup, "{ended}");
    }
}

/// What cannot be read is quoted in an error.
#[test]
fn an_error_about_a_hostile_row_is_harmless() {
    for file in ["fenced/history.jsonl", "fenced/faults.jsonl"] {
        let run = Run::new();
        let row = json!({ "at_ns": 1, "worker": "a", "event": HOSTILE, "fault": HOSTILE, "id": 1 });
        fs::write(run.file(file), format!("{row}\n")).expect("a copy");
        let ended = offline(&["check", run.path()]).expect_code(64);
        expect_harmless(&ended.stderr);
        let forged = ended.stderr.lines().any(|line| line.starts_with("forged"));
        assert!(!forged, "{ended}");
    }
    let run = Run::new();
    let result = run.file("result.json");
    let mut changed = json(&result);
    changed["stable"]["verdict"] = json!(HOSTILE);
    fs::write(&result, changed.to_string()).expect("a copy");
    let ended = offline(&["check", run.path()]).expect_code(64);
    expect_harmless(&ended.stderr);
    assert!(ended.stderr.contains("\\x1b[2J"), "{ended}");
}

/// What a result calls a case or a scenario may become a folder.
#[test]
fn a_result_with_a_name_that_is_none_is_refused() {
    let good = project().join("tests/results/pause-gt-ttl/good");
    let good = good.to_str().expect("a plain path");
    for name in ["../../x", "/etc", HOSTILE] {
        for part in ["cases", "unfinished", "scenario"] {
            let run = Run::new();
            let result = run.file("result.json");
            let mut changed = json(&result);
            let stable = &mut changed["stable"];
            match part {
                "cases" => stable["cases"][name] = stable["cases"]["fenced"].clone(),
                "unfinished" => stable["unfinished"] = json!([name]),
                _ => stable["scenario"]["name"] = json!(name),
            }
            fs::write(&result, changed.to_string()).expect("a copy");
            for arguments in [
                &["check", run.path()][..],
                &["report", run.path()],
                &["diff", good, run.path()],
                &["bless", run.path()],
            ] {
                let ended = offline(arguments).expect_said(&["is not a name"]);
                assert!(matches!(ended.code, Some(2 | 64)), "{ended}");
                expect_harmless(&ended.stderr);
            }
        }
    }
}

/// What is typed may come from a script, and what is listed from anybody's file.
#[test]
fn arguments_and_scenarios_are_shown_harmlessly() {
    for arguments in [
        [HOSTILE].as_slice(),
        &["check"],
        &["check", HOSTILE],
        &["check", ".", &format!("--{HOSTILE}")],
        &["run", HOSTILE],
        &["diff", HOSTILE, HOSTILE],
        &["report", "--format", HOSTILE, "."],
        &["report", "--index", HOSTILE],
        &["validate", HOSTILE],
        &["run", SCENARIO, "--set", HOSTILE],
    ] {
        let ended = offline(arguments).expect_code(64);
        expect_harmless(&ended.stderr);
        expect_harmless(&ended.stdout);
    }
    let home = Home::new();
    let text = fs::read_to_string(home.file("scenarios/pause-gt-ttl.yml")).expect("a scenario");
    let (_, rest) = text.split_once("topology:").expect("a scenario");
    let about = r#""\e[31mred\e]0;pwn\a\u202e\x9b2J""#;
    let text = format!("name: hostile\nabout: {about}\ntopology:{rest}");
    home.write("scenarios/hostile.yml", text);
    for arguments in [
        ["list"].as_slice(),
        &["list", "--markdown"],
        &["list", "--format", "json"],
        &["plan", "hostile"],
    ] {
        let mut command = command(arguments);
        command.env("CLICOLOR_FORCE", "1");
        command.env("FENCEPOST_HOME", home.path());
        let ended = start(command).wait();
        expect_harmless(&ended.stdout);
        expect_harmless(&ended.stderr);
        assert!(ended.stdout.contains("red"), "{ended}");
    }
}

/// A recorded run, to be changed.
struct Run {
    folder: TempDir,
}

impl Run {
    fn new() -> Run {
        let folder = tempfile::tempdir().expect("a temporary folder");
        copy_folder(
            &project().join("tests/results/pause-gt-ttl/settings"),
            folder.path(),
        );
        Run { folder }
    }

    /// Every text of the record that a worker, a server or a harness chose.
    fn with_hostile_text() -> Run {
        let run = Run::new();
        for case in ["unfenced", "fenced"] {
            let chosen: [(&str, &[&str]); 4] = [
                ("history.jsonl", &["key", "owner", "error", "reason"]),
                ("accepted.jsonl", &["key", "owner", "value"]),
                ("faults.jsonl", &["detail"]),
                ("locks.jsonl", &["key", "owner"]),
            ];
            for (file, fields) in chosen {
                spoil_rows(&run.file(&format!("{case}/{file}")), fields);
            }
            let history = run.file(&format!("{case}/history.jsonl"));
            let failed = json!({
                "at_ns": rows(&history)[0]["at_ns"], "worker": HOSTILE,
                "event": "failed", "round": 1, "during": "acquire", "error": HOSTILE,
            });
            let text = fs::read_to_string(&history).expect("rows");
            fs::write(&history, format!("{text}{failed}\n")).expect("a copy");
            let notes = run.file(&format!("{case}/case.json"));
            let mut changed = json(&notes);
            changed["gaps"] = json!([HOSTILE]);
            changed["values"] = json!({ HOSTILE: HOSTILE });
            changed["versions"] = json!({ HOSTILE: HOSTILE });
            changed["workers"] = json!(["a", "b", HOSTILE]);
            changed["resource"] = json!(HOSTILE);
            fs::write(&notes, changed.to_string()).expect("a copy");
        }
        let result = run.file("result.json");
        let mut changed = json(&result);
        changed["environment"][HOSTILE] = json!(HOSTILE);
        changed["stable"]["mutant"] = json!(HOSTILE);
        changed["stable"]["cases"]["fenced"]["doubts"] = json!([HOSTILE]);
        fs::write(&result, changed.to_string()).expect("a copy");
        run
    }

    fn path(&self) -> &str {
        self.folder.path().to_str().expect("a plain path")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// The same hostile text behind each value, so that what belongs together still does.
fn spoil_rows(path: &Path, fields: &[&str]) {
    let spoilt = rows(path).into_iter().map(|mut row: Value| {
        for field in fields {
            if let Some(text) = row[field].as_str().map(str::to_owned) {
                row[field] = json!(format!("{text}{HOSTILE}"));
            }
        }
        format!("{row}\n")
    });
    let spoilt: String = spoilt.collect();
    fs::write(path, spoilt).expect("a copy");
}

/// Without the colours that a report itself gives.
fn without_colours(text: &str) -> String {
    let codes = ["0", "31", "32", "33", "36"].map(|code| format!("\u{1b}[{code}m"));
    codes
        .iter()
        .fold(text.to_owned(), |text, code| text.replace(code, ""))
}

#[track_caller]
fn expect_harmless(text: &str) {
    let is_unseen = |c: char| {
        !matches!(c, '\n' | '\t')
            && (c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'))
    };
    assert!(!text.contains(is_unseen), "{text:?}");
}
