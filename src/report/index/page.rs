//! The overview as a page: a table of all scenarios, the worst first, and a section for each
//! below it.

use super::strip::strip;
use super::trends::trends;
use super::*;
use crate::report::html::document;

/// The number of reasons that are shown for each scenario; the list of its runs has all.
const REASONS: usize = 3;

/// Nothing is loaded and no script runs, so the name of a file is only text.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

pub fn page(histories: &[History]) -> String {
    let mut sorted: Vec<&History> = histories.iter().collect();
    sorted.sort_by_key(|history| (rank(history), &history.scenario));
    let head = html! {
        meta http-equiv="Content-Security-Policy" content=(POLICY);
        style { (PreEscaped(include_str!("style.css"))) }
    };
    let body = html! {
        h1 { "Runs of fencepost" }
        p.lead { (lead(histories)) }
        div.wide { table.overview {
            thead { tr {
                th { "scenario" } th { "newest run" } th { "baseline" }
                th { "cases as expected" } th { "runs, oldest first" }
            } }
            tbody { @for history in &sorted { (row(history)) } }
        } }
        p.faint {
            "Each mark is a run and leads to its page: \
             ✓ as expected, ✗ not as expected, ? inconclusive, – cannot be read."
        }
        @for history in &sorted { (section(history)) }
    };
    document("Runs of fencepost", &head, &body)
}

/// Returns the sort key of a scenario: the worst come first.
fn rank(history: &History) -> u8 {
    match history.newest().map(|run| &run.seen) {
        Some(Ok(seen)) if seen.verdict == Outcome::NotAsExpected => 0,
        _ if history.differs() == Some(true) => 1,
        Some(Ok(seen)) if seen.verdict == Outcome::AsExpected => 3,
        Some(_) => 2,
        None => 4,
    }
}

fn lead(histories: &[History]) -> String {
    let newest = || histories.iter().filter_map(History::newest);
    let count = |wanted: Outcome| {
        let is_it = |run: &&Run| run.seen.as_ref().is_ok_and(|seen| seen.verdict == wanted);
        newest().filter(is_it).count()
    };
    let mut words = format!(
        "{} of {} scenarios as expected",
        count(Outcome::AsExpected),
        histories.len(),
    );
    let unreadable = newest().filter(|run| run.seen.is_err()).count();
    let without = histories.len() - newest().count();
    let others = [
        (count(Outcome::NotAsExpected), "not as expected"),
        (count(Outcome::Inconclusive), "inconclusive"),
        (unreadable, "unreadable"),
        (without, "without a run"),
    ];
    for (count, what) in others.iter().filter(|(count, _)| *count > 0) {
        let _ = write!(words, ", {count} {what}");
    }
    let differ = histories.iter().filter(|one| one.differs() == Some(true));
    match differ.count() {
        0 => words.push('.'),
        1 => words += "; 1 differs from its baseline.",
        more => {
            let _ = write!(words, "; {more} differ from their baselines.");
        }
    }
    if let Some(last) = newest().map(|run| &run.name).max() {
        let _ = write!(words, " The newest run began at {}.", when(last));
    }
    words
}

fn row(history: &History) -> Markup {
    let newest = history.newest();
    let verdict = newest.map_or("none", |run| mark_of(&run.seen).name);
    let seen = newest.and_then(|run| run.seen.as_ref().ok());
    html! {
        tr data-scenario=(history.scenario) data-verdict=(verdict) {
            th scope="row" { a href={ "#" (anchor(history)) } { (history.scenario) } }
            td { @match newest { Some(run) => (newest_words(run)), None => (faint("no run yet")) } }
            td data-head="baseline" { (baseline_words(history)) }
            td data-head="cases as expected" {
                @match seen { Some(seen) => (seen.cases_as_expected()), None => (faint("unknown")) }
            }
            td { (strip(history)) }
        }
    }
}

fn faint(words: &str) -> Markup {
    html! { span.faint { (words) } }
}

fn newest_words(run: &Run) -> Markup {
    let with = match &run.seen {
        Ok(seen) if !seen.is_plain() => format!(", with {}", seen.with.join(", ")),
        _ => String::new(),
    };
    html! {
        (mark_of(&run.seen).badge()) " " small { a href=(run.link) { (when(&run.name)) (with) } }
    }
}

fn baseline_words(history: &History) -> Markup {
    html! {
        @match &history.baseline {
            None => (faint("none")),
            Some(Ok(seen)) => (Mark::of(seen.verdict).badge()),
            Some(Err(reason)) => span.unreadable { (reason) },
        }
        @if history.differs() == Some(true) { " " span.differs { "differs" } }
    }
}

fn section(history: &History) -> Markup {
    html! {
        h2 id=(anchor(history)) { (history.scenario) }
        (complaints(history))
        @for remark in &history.remarks { p.faint { (remark) } }
        (cases(history))
        (trends(history))
        (all_runs(history))
    }
}

/// Lists the runs that cannot be read, the newest first.
fn complaints(history: &History) -> Markup {
    let bad = history.runs.iter().rev();
    let bad = bad.filter_map(|run| Some((run.name.as_str(), run.seen.as_ref().err()?)));
    let bad: Vec<(&str, &String)> = bad.collect();
    let more = bad.len().saturating_sub(REASONS);
    html! {
        @if !bad.is_empty() {
            div.warning {
                @for (name, reason) in bad.iter().take(REASONS) {
                    p { "The run of " (when(name)) " cannot be read: " (reason) "." }
                }
                @if more > 0 { p { "So it is with " (more) " more, listed below." } }
            }
        }
    }
}

/// Shows the outcome of each case in the newest readable run, beside the baseline.
fn cases(history: &History) -> Markup {
    let mut runs = history.runs.iter().rev();
    let newest = runs.find_map(|run| run.seen.as_ref().ok());
    let called = match history.newest() {
        Some(Run { seen: Err(_), .. }) => "newest run that can be read",
        _ => "newest run",
    };
    let baseline = history
        .baseline
        .as_ref()
        .and_then(|seen| seen.as_ref().ok());
    let names = [newest, baseline].into_iter().flatten();
    let names = names.flat_map(|seen| seen.cases.keys().chain(&seen.unfinished));
    let names: BTreeSet<&String> = names.collect();
    html! {
        @if !names.is_empty() {
            div.wide { table {
                thead { tr { th { "case" } th { (called) } th { "baseline" } } }
                tbody {
                    @for name in names {
                        tr data-case=(name) {
                            td { (name) }
                            td { (standing(newest, name)) }
                            td { (standing(baseline, name)) }
                        }
                    }
                }
            } }
        }
    }
}

fn standing(seen: Option<&RunDigest>, case: &str) -> Markup {
    let Some(seen) = seen else {
        return faint("none");
    };
    match seen.cases.get(case) {
        Some(outcome) => html! { (Mark::of(*outcome).badge()) (lock_words(seen, case)) },
        None if seen.unfinished.contains(case) => faint("did not finish"),
        None => faint("absent"),
    }
}

/// Shows the outcome of the lock, if the result has it.
fn lock_words(seen: &RunDigest, case: &str) -> Markup {
    html! {
        @match seen.locks.get(case) {
            None => {}
            Some(LockOutcome::Broken) => { " " span.differs { "lock broken" } }
            Some(other) => { " " small { "lock " (lock::word(*other)) } }
        }
    }
}

/// Lists the runs with the newest first, because people look for that.
fn all_runs(history: &History) -> Markup {
    let count = history.runs.len();
    html! {
        @if count == 0 { p.faint { "There is no run of it yet." } }
        @else {
            details {
                summary { @if count == 1 { "The run" } @else { "All " (count) " runs" } }
                div.wide { table {
                    thead { tr {
                        th { "began" } th { "verdict" } th { "cases as expected" }
                        th.number { "seed" } th { "remarks" }
                    } }
                    tbody { @for run in history.runs.iter().rev() { (run_row(run)) } }
                } }
                @if history.older > 0 {
                    p.faint { (history.older) " older runs are in the folder and not listed." }
                }
            }
        }
    }
}

fn run_row(run: &Run) -> Markup {
    let remarks = |seen: &RunDigest| {
        let unfinished = seen.unfinished.iter();
        let unfinished = unfinished.map(|case| format!("{case} did not finish"));
        let with = seen.with.iter().map(|with| format!("with {with}"));
        joined(unfinished.chain(with), ", ")
    };
    html! {
        tr {
            td { a href=(run.link) { (when(&run.name)) } }
            td { (mark_of(&run.seen).badge()) }
            @match &run.seen {
                Err(reason) => { td {} td.number {} td { (reason) } }
                Ok(seen) => {
                    td { (seen.cases_as_expected()) }
                    td.number { (seen.seed) }
                    td { (remarks(seen)) }
                }
            }
        }
    }
}

/// Returns an anchor of only letters, digits and `-`, because names come from folders. Other
/// characters are replaced by their numbers, so that anchors stay distinct.
fn anchor(history: &History) -> String {
    let plain = |c: char| match c.is_ascii_alphanumeric() || c == '-' {
        true => c.to_string(),
        false => format!("_{:x}", c as u32),
    };
    let name: String = history.scenario.chars().map(plain).collect();
    format!("scenario-{name}")
}
