//! A history as JSON lines, so that it can be put into the corpus.

use super::truth::Planted;
use super::world::Played;
use fencepost::model::{Judgement, LogRow};
use serde::Serialize;
use std::fmt::Write;

pub fn lines<'a, T: Serialize + 'a>(rows: impl IntoIterator<Item = &'a T>) -> String {
    let rows = rows.into_iter();
    let lines = rows.map(|row| serde_json::to_string(row).expect("plain data"));
    lines.fold(String::new(), |text, line| text + &line + "\n")
}

/// All that one needs to see who is wrong.
pub fn report(played: &Played, log: &[LogRow], judgement: &Judgement) -> String {
    let record = &played.record;
    let mut text = String::new();
    let mut part = |name: &str, rows: String| {
        write!(text, "--- {name}\n{rows}").expect("a string takes everything");
    };
    part("history.jsonl", lines(&record.history));
    part("accepted.jsonl", lines(log));
    part("faults.jsonl", lines(&record.faults));
    part("locks.jsonl", lines(&record.locks));
    part("plan", format!("{:#?}\n", record.plan));
    part("values", format!("{:?}\n", record.values));
    let said = format!(
        "ended_ns {:?}, settled {}, log_rows {:?}, lock_servers {:?}, gaps {:?}\n",
        record.ended_ns, record.settled, record.log_rows, record.lock_servers, record.gaps
    );
    part("case", said);
    part("settings", format!("{:?}\n", played.settings));
    let planted = played.truth.planted.iter().map(|planted| {
        let Planted {
            defect,
            at_ns,
            owner,
            other,
            row,
        } = planted;
        format!("{defect:?} at {at_ns}: owner `{owner}`, other `{other}`, row {row}\n")
    });
    part("planted", planted.collect());
    let words = |found: &[fencepost::model::Violation]| {
        let words = found.iter();
        let words =
            words.map(|v| format!("{} row {} at {}: {}\n", v.kind, v.row, v.at_ns, v.detail));
        words.collect::<String>()
    };
    part("violations", words(&judgement.violations));
    part("excused", words(&judgement.excused));
    part("doubts", format!("{:?}\n", judgement.doubts));
    text
}
