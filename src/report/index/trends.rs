//! How measurements went from run to run: a small line for each, with the first value,
//! the last, and the range. A run that did not measure something is a gap and not a zero.

use super::{History, Seen};
use crate::report::markup::escaped;
use crate::report::units::Unit;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Runs that a line goes through.
const RUNS: usize = 40;
/// Lines for a case, beside those that everybody looks at: a load has hundreds.
const MORE: usize = 60;
const WIDTH: f64 = 120.0;
const HEIGHT: f64 = 24.0;
const MARGIN: f64 = 3.0;

/// What people look at first; the rest is folded away.
const FIRST: [&str; 7] = [
    "scenario_ms",
    "overhead_ms",
    "blocked_ms",
    "quiet_ms",
    "acquire.p50_us",
    "acquire.p99_us",
    "throughput_per_s",
];

pub fn trends(history: &History) -> String {
    let runs = history.runs.iter().filter_map(|run| run.seen.as_ref().ok());
    let runs: Vec<&Seen> = runs.filter(|seen| seen.is_plain()).collect();
    let runs = &runs[runs.len().saturating_sub(RUNS)..];
    let names: BTreeSet<&(String, String)> =
        runs.iter().flat_map(|run| run.numbers.keys()).collect();
    if names.is_empty() {
        return String::new();
    }
    let (first, more): (Vec<_>, Vec<_>) = names.into_iter().partition(|(_, name)| is_first(name));
    let hidden = more.len().saturating_sub(MORE);
    let row = |name: &&(String, String)| row(name, runs);
    let rows = |names: &[&(String, String)]| names.iter().map(row).collect::<String>();
    let count = runs.len();
    let mut text = match count {
        1 => "<h3>Measurements of one run</h3>\n".to_owned(),
        _ => format!("<h3>Measurements over the last {count} runs</h3>\n"),
    };
    text += &table(&rows(&first));
    if !more.is_empty() {
        let shown = &more[..more.len() - hidden];
        let left_out = match hidden {
            0 => String::new(),
            hidden => format!("<p class=\"faint\">{hidden} more are in each result.json.</p>\n"),
        };
        let _ = writeln!(
            text,
            "<details><summary>{} more measurements</summary>\n{}{left_out}</details>",
            more.len(),
            table(&rows(shown)),
        );
    }
    text
}

fn is_first(name: &str) -> bool {
    let is_it = |first: &str| name == first || name.ends_with(&format!(".{first}"));
    FIRST.into_iter().any(is_it) || name.starts_with("load.figures.")
}

fn table(rows: &str) -> String {
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "<div class=\"wide\"><table><thead><tr><th>case</th><th>measurement</th><th>trend</th>\
         <th class=\"number\">first</th><th class=\"number\">last</th><th class=\"number\">range</th></tr></thead>\n\
         <tbody>\n{rows}</tbody></table></div>\n"
    )
}

fn row(name: &(String, String), runs: &[&Seen]) -> String {
    let values: Vec<Option<f64>> = runs
        .iter()
        .map(|run| run.numbers.get(name).copied())
        .collect();
    let known = || values.iter().flatten().copied();
    let (Some(first), Some(last)) = (known().next(), known().next_back()) else {
        return String::new();
    };
    let (low, high) = (known().fold(first, f64::min), known().fold(first, f64::max));
    let (case, what) = (escaped(&name.0), escaped(&name.1));
    let unit = Unit::of(&name.1);
    let written = |value: f64| unit.write(value);
    let (first, last) = (written(first), written(last));
    let range = format!("{} – {}", written(low), written(high));
    let words = format!(
        "from {first} to {last}, between {}",
        range.replace('–', "and")
    );
    let line = sparkline(&values, low, high, &words);
    format!(
        "<tr data-case=\"{case}\" data-measurement=\"{what}\"><td>{case}</td><td>{what}</td><td>{line}</td>\
         <td class=\"number\">{first}</td><td class=\"number\">{last}</td><td class=\"number\">{range}</td></tr>\n"
    )
}

/// A line through what is there, and a dot at its end. One value alone is no trend.
fn sparkline(values: &[Option<f64>], low: f64, high: f64, words: &str) -> String {
    if values.iter().flatten().count() < 2 {
        return String::new();
    }
    let step = (WIDTH - 2.0 * MARGIN) / (values.len() - 1) as f64;
    let place = |(index, value): (usize, f64)| {
        let part = match high > low {
            true => (value - low) / (high - low),
            false => 0.5,
        };
        let x = MARGIN + step * index as f64;
        let y = HEIGHT - MARGIN - part * (HEIGHT - 2.0 * MARGIN);
        (x, y)
    };
    let mut way = String::new();
    let (mut pen, mut last) = ('M', (0.0, 0.0));
    for (index, value) in values.iter().enumerate() {
        let Some(value) = value else {
            pen = 'M';
            continue;
        };
        last = place((index, *value));
        let _ = write!(way, "{pen}{:.0} {:.1}", last.0, last.1);
        pen = 'L';
    }
    format!(
        "<svg class=\"trend\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\" aria-label=\"{}\">\
         <path d=\"{way}\"/><circle cx=\"{:.0}\" cy=\"{:.1}\" r=\"2.5\"/></svg>",
        escaped(words),
        last.0,
        last.1,
    )
}
