//! What was expected, counted, broken, done and left, as tables.

use super::fault_span::fault_spans;
use crate::model::{CaseResult, RunRecord, Violation, ViolationKind};
use crate::report::html::table::{Cell, table};
use crate::report::lock;
use crate::report::mark::Mark;
use crate::report::markup::{cut, element, escaped};
use serde_json::json;
use std::collections::BTreeSet;

/// Rows of one table; the recorded files have them all.
const MOST_ROWS: usize = 60;
/// A longer one is folded up.
const MOST_OPEN: usize = 12;
/// What thirty probes saw is in the recorded files.
const LONGEST_WORDS: usize = 240;

/// Of all cases beside each other.
pub fn counts(run: &RunRecord) -> String {
    let cases = &run.cases;
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    let mut row = |what: &str, shown: String, of: &dyn Fn(&CaseResult) -> u64| {
        let numbers = cases
            .iter()
            .map(|case| Cell::count(&case.name, what, of(case)));
        rows.push(std::iter::once(Cell::words(shown)).chain(numbers).collect());
    };
    row("violations", "violations".to_owned(), &|case| {
        case.judgement.violations.len() as u64
    });
    let kinds = cases.iter().flat_map(|case| &case.judgement.violations);
    let kinds: BTreeSet<ViolationKind> = kinds.map(|violation| violation.kind).collect();
    for kind in kinds {
        row(kind.name(), format!("of these, {kind}"), &|case| {
            let by_kind = case.judgement.violations_by_kind();
            by_kind.get(&kind).copied().unwrap_or(0)
        });
    }
    for (name, _) in counted(cases.first()) {
        row(&name, name.replace('_', " "), &|case| {
            let mut all = counted(Some(case)).into_iter();
            all.find(|(other, _)| *other == name)
                .map_or(0, |(_, count)| count)
        });
    }
    let heads = cases.iter().map(|case| case.name.as_str());
    let heads: Vec<&str> = std::iter::once("").chain(heads).collect();
    match cases.is_empty() {
        true => String::new(),
        false => format!(
            "<section id=\"counts\">\n<h2>Counts</h2>\n{}</section>\n",
            table(&heads, rows, usize::MAX, "result.json")
        ),
    }
}

/// By the names that `result.json` has.
fn counted(case: Option<&CaseResult>) -> Vec<(String, u64)> {
    let counts = json!(case.map(|case| &case.judgement.counts));
    let counts = counts.as_object().into_iter().flatten();
    let counts = counts.filter_map(|(name, count)| Some((name.clone(), count.as_u64()?)));
    counts.collect()
}

pub fn expectations(case: &CaseResult) -> String {
    let rows = case.verdict.findings.iter().map(|finding| {
        vec![
            Cell::words(finding.what.replace('_', " ")),
            Cell::words(&finding.expected),
            Cell::words(&finding.found),
            Cell::markup(Mark::of_part(&case.verdict, finding.outcome).badge()),
        ]
    });
    let heads = ["", "expected", "found", ""];
    table(&heads, rows, MOST_ROWS, "result.json")
}

pub fn violations(case: &CaseResult) -> String {
    let violations = &case.judgement.violations;
    let rows = violations.iter().map(|violation| {
        let mut row = about(case, violation);
        row.push(Cell::prose(&violation.detail));
        row
    });
    let heads = [HEADS.as_slice(), &["what broke the rule"]].concat();
    let rows = table(&heads, rows, MOST_ROWS, "result.json");
    titled("Violations", violations.len(), &rows)
}

/// Breaks that a proven fault explains.
pub fn excused(case: &CaseResult) -> String {
    let excused = &case.judgement.excused;
    let rows = excused.iter().map(|violation| {
        let mut row = about(case, violation);
        row.push(Cell::prose(&violation.detail));
        row.push(Cell::words(lock::excuse(violation)));
        row
    });
    let heads = [HEADS.as_slice(), &["what broke the rule", "excused by"]].concat();
    let rows = table(&heads, rows, MOST_ROWS, "result.json");
    titled("Excused breaks", excused.len(), &rows)
}

const HEADS: [&str; 5] = ["violation", "key", "at", "row", "against"];

/// Not every break is about a write, and not every record has its time.
fn about(case: &CaseResult, violation: &Violation) -> Vec<Cell> {
    let row = |row: u64| {
        Cell::number(if row > 0 {
            row.to_string()
        } else {
            String::new()
        })
    };
    let at = match violation.at_ns {
        0 => String::new(),
        at_ns => seconds(case, at_ns),
    };
    vec![
        Cell::name(violation.kind),
        Cell::name(&violation.key),
        Cell::number(at),
        row(violation.row),
        row(violation.against.unwrap_or_default()),
    ]
}

pub fn faults(case: &CaseResult) -> String {
    let spans = fault_spans(&case.faults);
    let at = |ns: Option<u64>| Cell::number(ns.map_or("–".to_owned(), |ns| seconds(case, ns)));
    let rows = spans.iter().map(|span| {
        let proof = Cell::prose(cut(span.proof, LONGEST_WORDS));
        let proof = match span.observed_ns {
            Some(_) => proof,
            None => proof.after("<strong>unproven:</strong> "),
        };
        let end = span.ended_ns.filter(|_| span.kind.stands());
        let healed = if span.healed { " (healed)" } else { "" };
        vec![
            Cell::name(span.kind),
            Cell::name(span.target),
            at(Some(span.requested_ns)),
            at(span.observed_ns),
            Cell::number(end.map_or("–".to_owned(), |ns| seconds(case, ns) + healed)),
            proof,
        ]
    });
    let heads = [
        "fault",
        "on",
        "requested",
        "observed",
        "ended",
        "what proved it",
    ];
    let rows = table(&heads, rows, MOST_ROWS, "faults.jsonl");
    titled("Faults", spans.len(), &rows)
}

pub fn overlaps(case: &CaseResult) -> String {
    let overlaps = &case.judgement.overlaps;
    let rows = overlaps.iter().map(|overlap| {
        let ms = overlap.to_ns.saturating_sub(overlap.from_ns) as f64 / 1e6;
        vec![
            Cell::name(&overlap.key),
            Cell::words(format!("{} and {}", overlap.first, overlap.second)),
            Cell::number(seconds(case, overlap.from_ns)),
            Cell::number(format!("{ms:.1} ms")),
            Cell::words(if overlap.definite {
                "certainly"
            } else {
                "possibly"
            }),
        ]
    });
    let heads = ["key", "held at the same time by", "from", "for", ""];
    let rows = table(&heads, rows, MOST_ROWS, "result.json");
    let counts = &case.judgement.counts;
    let all = (counts.definite_overlaps + counts.possible_overlaps) as usize;
    let more = match all.saturating_sub(overlaps.len()) {
        0 => String::new(),
        more => format!(
            "<p><small>{more} more are counted and not named; the holds are in history.jsonl.</small></p>\n"
        ),
    };
    titled(
        "Overlapping holds",
        all.max(overlaps.len()),
        &(rows + &more),
    )
}

/// What the resource held in the end. Of a load there may be thousands, and nobody
/// was told to write anything in particular.
pub fn values(case: &CaseResult) -> String {
    let values = case.notes.values.iter();
    let values: Vec<_> = values.filter(|_| case.notes.load.is_none()).collect();
    let rows = values.iter().map(|(key, value)| {
        let value = String::from_utf8_lossy(value.as_bytes());
        let value = escaped(&cut(&value, LONGEST_WORDS));
        let writer = case.judgement.last_writers.get(*key);
        vec![
            Cell::name(key),
            Cell::markup(element("code", &[], &value)),
            Cell::words(writer.map_or("", |(worker, _)| worker)),
        ]
    });
    let rows = table(
        &["key", "value", "last writer"],
        rows,
        MOST_ROWS,
        "case.json",
    );
    titled("Values at the end", values.len(), &rows)
}

/// Since the first event of the case.
pub fn seconds(case: &CaseResult, at_ns: u64) -> String {
    format!("{:.3} s", case.millis_since_start(at_ns) / 1_000.0)
}

/// What is long is there for whoever opens it.
fn titled(title: &str, count: usize, rows: &str) -> String {
    match count {
        _ if rows.is_empty() => String::new(),
        count if count > MOST_OPEN => {
            format!("<details>\n<summary>{title} ({count})</summary>\n{rows}</details>\n")
        }
        count => format!("<h3>{title} ({count})</h3>\n{rows}"),
    }
}
