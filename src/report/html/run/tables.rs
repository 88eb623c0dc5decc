//! Tables of expectations, counts, violations, faults, overlaps and final values.

use super::*;
use crate::report::html::table::{markup, name, number, prose, table, words};

/// The most rows of one table; the recorded files have all of them.
const MOST_ROWS: usize = 60;
/// A table with more rows than this is folded.
const MOST_OPEN: usize = 12;
/// The most letters of a cell. The recorded files have long texts, such as those of thirty
/// probes, in full.
const LONGEST_WORDS: usize = 240;

/// Shows the counts of all cases side by side, with names that a program can find.
pub fn counts(run: &RunRecord) -> Markup {
    let cases = &run.cases;
    let mut rows: Vec<Vec<Markup>> = Vec::new();
    let mut row = |what: &str, shown: String, counted: Vec<u64>| {
        let numbers = cases.iter().zip(counted).map(|(case, count)| {
            html! {
                td.number data-case=(case.name) data-count=(what) { (count) }
            }
        });
        rows.push(std::iter::once(words(shown)).chain(numbers).collect());
    };
    let all = cases
        .iter()
        .map(|case| case.judgement.violations.len() as u64);
    row("violations", "violations".to_owned(), all.collect());
    let kinds = cases.iter().flat_map(|case| &case.judgement.violations);
    let kinds: BTreeSet<ViolationKind> = kinds.map(|violation| violation.kind).collect();
    for kind in kinds {
        let of = |case: &CaseResult| case.judgement.violations_by_kind().get(&kind).copied();
        let counted = cases.iter().map(|case| of(case).unwrap_or(0));
        row(kind.name(), format!("of these, {kind}"), counted.collect());
    }
    let numbers: Vec<_> = cases.iter().map(document::numbers).collect();
    for name in numbers.first().into_iter().flat_map(|first| first.keys()) {
        let counted = numbers
            .iter()
            .map(|all| all.get(name).copied().unwrap_or(0));
        row(name, name.replace('_', " "), counted.collect());
    }
    let heads = cases.iter().map(|case| case.name.as_str());
    let heads: Vec<&str> = std::iter::once("").chain(heads).collect();
    html! {
        @if !cases.is_empty() {
            section #counts { h2 { "Counts" } (table(&heads, rows, usize::MAX, "result.json")) }
        }
    }
}

pub fn expectations(case: &CaseResult) -> Markup {
    let rows = case.verdict.findings.iter().map(|finding| {
        let badge = Mark::of_part(&case.verdict, finding.outcome).badge();
        let what = finding.what.replace('_', " ");
        vec![
            words(what),
            words(&finding.expected),
            words(&finding.found),
            markup(badge),
        ]
    });
    let heads = ["", "expected", "found", ""];
    table(&heads, rows, MOST_ROWS, "result.json")
}

pub fn violations(case: &CaseResult) -> Markup {
    let violations = &case.judgement.violations;
    let rows = violations.iter().map(|violation| about(case, violation));
    counted("Violations", &HEADS[..6], rows, "result.json")
}

/// Shows the breaks that a proven fault explains.
pub fn excused(case: &CaseResult) -> Markup {
    let excused = &case.judgement.excused;
    let rows = excused.iter().map(|violation| {
        let mut row = about(case, violation);
        row.push(words(lock::excuse(violation)));
        row
    });
    counted("Excused breaks", &HEADS, rows, "result.json")
}

const HEADS: [&str; 7] = [
    "violation",
    "key",
    "at",
    "row",
    "against",
    "what broke the rule",
    "excused by",
];

/// Returns the cells of a violation. Not every violation is about a write, and not every record
/// has its time.
fn about(case: &CaseResult, violation: &Violation) -> Vec<Markup> {
    let some = |value: u64, words: String| number(if value > 0 { words } else { String::new() });
    let Violation { at_ns, row, .. } = *violation;
    let against = violation.against.unwrap_or_default();
    vec![
        name(violation.kind),
        name(&violation.key),
        some(at_ns, seconds(case, at_ns)),
        some(row, row.to_string()),
        some(against, against.to_string()),
        prose(&violation.detail),
    ]
}

pub fn faults(case: &CaseResult) -> Markup {
    let spans = fault_spans(&case.faults);
    let at = |ns: Option<u64>| number(ns.map_or("–".to_owned(), |ns| seconds(case, ns)));
    let rows = spans.iter().map(|span| {
        let end = span.ended_ns.filter(|_| span.kind.lasts());
        let healed = if span.healed { " (healed)" } else { "" };
        let proof = html! {
            td.prose {
                @if span.observed_ns.is_none() { strong { "unproven:" } " " }
                (cut(span.proof, LONGEST_WORDS))
            }
        };
        vec![
            name(span.kind),
            name(span.target),
            at(Some(span.requested_ns)),
            at(span.observed_ns),
            number(end.map_or("–".to_owned(), |ns| seconds(case, ns) + healed)),
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
    counted("Faults", &heads, rows, "faults.jsonl")
}

pub fn overlaps(case: &CaseResult) -> Markup {
    let overlaps = &case.judgement.overlaps;
    let rows = overlaps.iter().map(|overlap| {
        let ms = overlap.to_ns.saturating_sub(overlap.from_ns) as f64 / 1e6;
        vec![
            name(&overlap.key),
            words(format!("{} and {}", overlap.first, overlap.second)),
            number(seconds(case, overlap.from_ns)),
            number(format!("{ms:.1} ms")),
            words(if overlap.definite {
                "certainly"
            } else {
                "possibly"
            }),
        ]
    });
    let counts = &case.judgement.counts;
    let all = (counts.definite_overlaps + counts.possible_overlaps) as usize;
    let more = all.saturating_sub(overlaps.len());
    let heads = ["key", "held at the same time by", "from", "for", ""];
    let rows = html! {
        (table(&heads, rows, MOST_ROWS, "result.json"))
        @if more > 0 {
            p { small {
                (more) " more are counted and not named; the holds are in history.jsonl."
            } }
        }
    };
    titled("Overlapping holds", all.max(overlaps.len()), &rows)
}

/// Shows the final values of the resource. A load is left out: it may have thousands, and no
/// particular value was expected.
pub fn values(case: &CaseResult) -> Markup {
    let values = case.notes.values.iter();
    let values: Vec<_> = values.filter(|_| case.notes.load.is_none()).collect();
    let rows = values.iter().map(|(key, value)| {
        let value = String::from_utf8_lossy(value.as_bytes());
        let value = html! { code { (cut(&value, LONGEST_WORDS)) } };
        let writer = case.judgement.last_writers.get(*key);
        vec![
            name(key),
            markup(value),
            words(writer.map_or("", |(worker, _)| worker)),
        ]
    });
    let heads = ["key", "value", "last writer"];
    counted("Values at the end", &heads, rows, "case.json")
}

/// Returns the time since the first event of the case.
pub fn seconds(case: &CaseResult, at_ns: u64) -> String {
    format!("{:.3} s", case.millis_since_start(at_ns) / 1_000.0)
}

fn counted(
    title: &str,
    heads: &[&str],
    rows: impl ExactSizeIterator<Item = Vec<Markup>>,
    rest: &str,
) -> Markup {
    titled(title, rows.len(), &table(heads, rows, MOST_ROWS, rest))
}

/// Adds a title, and folds a long table.
fn titled(title: &str, count: usize, rows: &Markup) -> Markup {
    html! {
        @if rows.0.is_empty() {}
        @else if count > MOST_OPEN {
            details { summary { (title) " (" (count) ")" } (rows) }
        } @else {
            h3 { (title) " (" (count) ")" }
            (rows)
        }
    }
}
