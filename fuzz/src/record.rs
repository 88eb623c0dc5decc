//! The folder of a run, in one input: `=== history.jsonl` begins a file.

use fencepost::report::document::ResultDocument;
use fencepost::report::junit;
use fencepost::run::{judge_run, write_page};
use fencepost::scenario::{Scenario, Settings, Surroundings};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const SCENARIO: &str = include_str!("../../scenarios/pause-gt-ttl.yml");
const CASE: &str = "fenced";
const BEGINS: &str = "=== ";
/// What a case is judged by.
pub const FILES: [&str; 5] = [
    "history.jsonl",
    "accepted.jsonl",
    "faults.jsonl",
    "locks.jsonl",
    "case.json",
];
/// The page is bounded, whatever the record holds.
const LARGEST_PAGE: u64 = 5_000_000;

thread_local! {
    static FOLDER: TempDir = tempfile::tempdir().expect("a folder");
    static PLAN: Scenario = {
        let settings = Settings::default();
        let file = Path::new("scenario.yml");
        Scenario::parse(file, SCENARIO, &settings, &Surroundings::Recorded).expect("a scenario")
    };
}

/// Judged, reported and drawn.
pub fn record(input: &[u8]) {
    FOLDER.with(|folder| PLAN.with(|scenario| judge(input, folder.path(), scenario)));
}

fn judge(input: &[u8], folder: &Path, scenario: &Scenario) {
    let case = folder.join(CASE);
    fs::create_dir_all(&case).expect("a folder");
    let text = String::from_utf8_lossy(input);
    for name in FILES {
        let begins = format!("{BEGINS}{name}\n");
        let content = text.split_once(&begins).map_or("", |(_, rest)| rest);
        let content = content.split(BEGINS).next().unwrap_or_default();
        match name == "case.json" && content.is_empty() {
            // As a killed run leaves it.
            true => drop(fs::remove_file(case.join(name))),
            false => fs::write(case.join(name), content).expect("a file"),
        }
    }
    let Ok(run) = judge_run(scenario, None, folder) else {
        return;
    };
    ResultDocument::of(&run);
    junit::document(&[junit::suite(&run)]);
    let page = write_page(&run, scenario, None).expect("a page");
    let length = fs::metadata(page).expect("a page").len();
    assert!(length < LARGEST_PAGE, "a page of {length} bytes");
}
