//! Measurements from run to run: a small line for each, with the first value, the last, and the
//! range. A run without the measurement is a gap and not a zero.

use super::*;

/// The number of runs that a line covers.
const RUNS: usize = 40;
/// The most further lines of a case, beside the usual ones: a load has hundreds.
const MORE: usize = 60;
const WIDTH: f64 = 120.0;
const HEIGHT: f64 = 24.0;
const MARGIN: f64 = 3.0;

/// The measurements that people look at first; the rest is folded.
const FIRST: [&str; 7] = [
    "scenario_ms",
    "overhead_ms",
    "blocked_ms",
    "quiet_ms",
    "acquire.p50_us",
    "acquire.p99_us",
    "throughput_per_s",
];

pub fn trends(history: &History) -> Markup {
    let runs = history.runs.iter().filter_map(|run| run.seen.as_ref().ok());
    let runs: Vec<&RunDigest> = runs.filter(|seen| seen.is_plain()).collect();
    let runs = &runs[runs.len().saturating_sub(RUNS)..];
    let names: BTreeSet<&(String, String)> =
        runs.iter().flat_map(|run| run.numbers.keys()).collect();
    let is_any = !names.is_empty();
    let (first, more): (Vec<_>, Vec<_>) = names.into_iter().partition(|(_, name)| is_first(name));
    let hidden = more.len().saturating_sub(MORE);
    html! {
        @if is_any {
            h3 {
                @if runs.len() == 1 { "Measurements of one run" }
                @else { "Measurements over the last " (runs.len()) " runs" }
            }
            (table(&first, runs))
            @if !more.is_empty() {
                details {
                    summary { (more.len()) " more measurements" }
                    (table(&more[..more.len() - hidden], runs))
                    @if hidden > 0 { p.faint { (hidden) " more are in each result.json." } }
                }
            }
        }
    }
}

fn is_first(name: &str) -> bool {
    let is_it = |first: &str| name == first || name.ends_with(&format!(".{first}"));
    FIRST.into_iter().any(is_it) || name.contains(".figures.")
}

fn table(names: &[&(String, String)], runs: &[&RunDigest]) -> Markup {
    html! {
        @if !names.is_empty() {
            div.wide { table {
                thead { tr {
                    th { "case" } th { "measurement" } th { "trend" }
                    th.number { "first" } th.number { "last" } th.number { "range" }
                } }
                tbody { @for name in names { (row(name, runs)) } }
            } }
        }
    }
}

fn row(name: &(String, String), runs: &[&RunDigest]) -> Markup {
    let values: Vec<Option<f64>> = runs
        .iter()
        .map(|run| run.numbers.get(name).copied())
        .collect();
    let known = || values.iter().flatten().copied();
    let (Some(first), Some(last)) = (known().next(), known().next_back()) else {
        return Markup::default();
    };
    let (low, high) = (known().fold(first, f64::min), known().fold(first, f64::max));
    let (case, what) = name;
    let [first, last, least, most] = [first, last, low, high].map(|one| Unit::of(what).write(one));
    let words = format!("from {first} to {last}, between {least} and {most}");
    html! {
        tr data-case=(case) data-measurement=(what) {
            td { (case) } td { (what) } td { (sparkline(&values, low, high, &words)) }
            td.number { (first) } td.number { (last) } td.number { (least) " – " (most) }
        }
    }
}

/// Draws a line through the known values, and a dot at its end. A single value is not a trend.
fn sparkline(values: &[Option<f64>], low: f64, high: f64, words: &str) -> Markup {
    if values.iter().flatten().count() < 2 {
        return Markup::default();
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
    let (x, y) = (format!("{:.0}", last.0), format!("{:.1}", last.1));
    html! {
        svg.trend viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } width=(WIDTH) height=(HEIGHT)
            role="img" aria-label=(words) {
            path d=(way) {}
            circle cx=(x) cy=(y) r="2.5" {}
        }
    }
}
