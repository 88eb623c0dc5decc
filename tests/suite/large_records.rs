//! Records that are large, or that somebody made to cost more than they weigh: judging one and making its page
//! takes time and memory in proportion to its rows, and the page is bounded.

use crate::support::*;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// Rows of each; with FENCEPOST_LARGE_RECORDS, as many as that says.
fn rows() -> u64 {
    let wanted = std::env::var("FENCEPOST_LARGE_RECORDS").ok();
    wanted.map_or(40_000, |rows| rows.parse().expect("a number of rows"))
}

/// A recorded case with other rows.
struct Record {
    folder: TempDir,
    history: String,
    log: String,
    locks: String,
    faults: String,
    at_ns: u64,
}

impl Record {
    fn new() -> Record {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let recorded = project().join("tests/results/pause-gt-ttl/settings");
        copy_folder(&recorded, folder.path());
        Record {
            folder,
            history: String::new(),
            log: String::new(),
            locks: String::new(),
            faults: String::new(),
            at_ns: 1_000_000_000,
        }
    }

    fn told(&mut self, worker: u64, event: &str) {
        self.at_ns += 1_000;
        let at_ns = self.at_ns;
        let row = format_args!(r#"{{"at_ns":{at_ns},"worker":"w{worker}",{event}}}"#);
        writeln!(self.history, "{row}").expect("memory");
    }

    fn acquired(&mut self, worker: u64, key: &str, round: u64, token: u64) {
        self.told(
            worker,
            &format!(r#""event":"acquiring","round":{round},"key":"{key}""#),
        );
        self.told(
            worker,
            &format!(
                r#""event":"acquired","round":{round},"key":"{key}","token":{token},"owner":"{}""#,
                owner(worker, round)
            ),
        );
    }

    fn released(&mut self, worker: u64, key: &str, round: u64, outcome: &str) {
        let about = format!(r#""round":{round},"key":"{key}""#);
        self.told(worker, &format!(r#""event":"releasing",{about}"#));
        self.told(
            worker,
            &format!(r#""event":"released",{about},"outcome":"{outcome}""#),
        );
    }

    fn lock(&mut self, event: &str, key: &str, owner: &str, token: u64) {
        let at_ns = self.at_ns;
        writeln!(
            self.locks,
            r#"{{"at_ns":{at_ns},"node":"redis","key":"{key}","event":"{event}","owner":"{owner}","token":{token}}}"#
        )
        .expect("memory");
    }

    fn logged(&mut self, key: &str, seq: u64, outcome: &str, owner: &str, token: u64) {
        let at_ns = self.at_ns;
        writeln!(
            self.log,
            r#"{{"seq":{seq},"at_ns":{at_ns},"key":"{key}","outcome":"{outcome}","token":{token},"owner":"{owner}"}}"#
        )
        .expect("memory");
    }

    fn fault(&mut self, id: u64, kind: &str, target: &str, stage: &str) {
        self.at_ns += 1_000;
        let at_ns = self.at_ns;
        writeln!(
            self.faults,
            r#"{{"at_ns":{at_ns},"id":{id},"fault":"{kind}","target":"{target}","stage":"{stage}","detail":"seen at {at_ns}"}}"#
        )
        .expect("memory");
    }

    fn write(&self) {
        let case = self.folder.path().join("fenced");
        for (name, rows) in [
            ("history.jsonl", &self.history),
            ("accepted.jsonl", &self.log),
            ("locks.jsonl", &self.locks),
            ("faults.jsonl", &self.faults),
        ] {
            fs::write(case.join(name), rows).expect("a copy");
        }
    }

    /// Judged, and its page, within little memory and time of the processor.
    fn expect_bounded(&self, what: &str) -> String {
        self.write();
        let folder = self.folder.path().to_str().expect("a plain path");
        for command in ["check", "report"] {
            let ended = bounded(&[command, folder]);
            let is_judged = matches!(ended.code, Some(0..=2));
            assert!(
                is_judged,
                "{what}: {command}: {:?} {}",
                ended.code, ended.stderr
            );
        }
        let page: PathBuf = self.folder.path().join("report.html");
        let page = fs::read_to_string(page).expect("a page");
        assert!(page.len() < 5_000_000, "{what}: {} bytes", page.len());
        page
    }
}

fn owner(worker: u64, round: u64) -> String {
    format!("owner-{worker}-{round}")
}

/// Two kilobytes and a tenth of a millisecond for each row, and what any program needs.
fn bounded(arguments: &[&str]) -> Ended {
    let (kilobytes, seconds) = (600_000 + 2 * rows(), 20 + rows() / 2_000);
    let limits = format!("ulimit -v {kilobytes}; ulimit -t {seconds}");
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(format!("{limits}; exec \"$0\" \"$@\""))
        .arg(env!("CARGO_BIN_EXE_fencepost"))
        .args(arguments)
        .current_dir(project());
    start(command).wait()
}

#[test]
fn a_long_healthy_record() {
    let mut record = Record::new();
    for round in 1..=rows() / 7 {
        let (worker, owner) = (round % 5, owner(round % 5, round));
        record.acquired(worker, "k", round, round);
        record.lock("granted", "k", &owner, round);
        record.logged("k", round, "accepted", &owner, round);
        record.released(worker, "k", round, "released");
        record.lock("released", "k", &owner, round);
    }
    let page = record.expect_bounded("a long record");
    assert!(page.contains("of this case are left out"));
}

#[test]
fn many_holds_at_the_same_time() {
    let mut record = Record::new();
    for worker in 0..rows() / 2 {
        record.acquired(worker, "k", 1, worker + 1);
    }
    let page = record.expect_bounded("overlapping holds");
    assert!(page.contains("more are counted and not named"));
    // The last one has no length.
    let holds = rows() / 2 - 1;
    let pairs = format!("Overlapping holds ({})", holds * (holds - 1) / 2);
    assert!(page.contains(&pairs), "no {pairs}");
}

#[test]
fn one_worker_with_a_great_many_holds() {
    let mut record = Record::new();
    for key in 0..rows() / 2 {
        record.acquired(1, &format!("k{key}"), 1, key + 1);
    }
    record.expect_bounded("one worker");
}

#[test]
fn one_fault_a_great_many_times() {
    let mut record = Record::new();
    for _ in 0..rows() {
        record.fault(1, "restart-empty", "redis", "requested");
    }
    record.expect_bounded("one fault");
}

#[test]
fn many_faults_and_many_holds_that_they_excuse() {
    let mut record = Record::new();
    let each = rows() / 10;
    for id in 1..=each {
        for stage in ["requested", "observed"] {
            record.fault(id, "restart-empty", "redis", stage);
        }
        record.fault(each + id, "pause", &format!("w{id}"), "requested");
        record.fault(each + id, "pause", &format!("w{id}"), "observed");
        record.acquired(id, "k", 1, each - id + 1);
        record.lock("granted", "k", &owner(id, 1), each - id + 1);
    }
    for id in 1..=each {
        record.acquired(id, "k", 2, id);
    }
    let page = record.expect_bounded("many faults");
    assert!(page.contains("more are in faults.jsonl"));
}

#[test]
fn many_keys_and_many_workers() {
    let mut record = Record::new();
    for worker in 0..rows() / 5 {
        let key = format!("k{worker}");
        record.acquired(worker, &key, 1, 1);
        record.lock("granted", &key, &owner(worker, 1), 1);
        record.released(worker, &key, 1, "unknown");
    }
    record.expect_bounded("many keys");
}

#[test]
fn many_releases_that_free_what_others_hold() {
    let mut record = Record::new();
    for worker in 0..rows() / 6 {
        record.acquired(worker, "k", 1, worker + 1);
        record.lock("granted", "k", &owner(worker, 1), worker + 1);
        record.released(worker, "k", 1, "freed_another");
        record.lock("released", "k", &owner(worker + 1, 1), worker + 2);
    }
    record.expect_bounded("foreign releases");
}

#[test]
fn many_owners_of_one_token_and_answers_that_the_log_does_not_have() {
    let mut record = Record::new();
    for worker in 0..rows() / 4 {
        let own = owner(worker, 1);
        record.logged("k", worker + 1, "accepted", &own, 7);
        let about = format!(r#""round":1,"key":"k","token":7,"owner":"{own}""#);
        record.told(1, &format!(r#""event":"writing",{about}"#));
        let position = (worker * 7) % 100 + 1;
        record.told(
            1,
            &format!(r#""event":"write_accepted",{about},"position":{position}"#),
        );
        record.told(
            1,
            &format!(r#""event":"write_rejected",{about},"seen":{worker},"got":7"#),
        );
    }
    let page = record.expect_bounded("owners of one token");
    assert!(page.contains("more are in result.json"));
}

#[test]
fn everything_at_one_moment() {
    let mut record = Record::new();
    for round in 1..=rows() / 4 {
        record.at_ns = 1_000_000_000;
        record.acquired(1, "k", round, round);
        record.at_ns = 1_000_000_000;
        record.acquired(1, "k", round, round);
    }
    record.expect_bounded("one moment");
}

#[test]
fn rows_that_are_as_long_as_a_row_may_be() {
    let mut record = Record::new();
    let long = "\u{20ac}".repeat(100_000);
    for round in 1..=40 {
        let owner = format!("{}-{round}", long);
        record.told(
            1,
            &format!(r#""event":"acquired","round":{round},"key":"{long}","token":{round},"owner":"{owner}""#),
        );
        record.logged(&long, round, "accepted", &owner, 1);
    }
    record.expect_bounded("long rows");
}
