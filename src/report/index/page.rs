//! The overview as a page: a table of all scenarios, the worst first, and a section for
//! each below it.

use super::strip::strip;
use super::trends::trends;
use super::when::when;
use super::{History, Run, Seen, mark_of};
use crate::model::{LockOutcome, Outcome};
use crate::report::html::document;
use crate::report::lock;
use crate::report::mark::Mark;
use crate::report::markup::escaped;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Reasons that are spelt out for each scenario; the list of its runs has all.
const REASONS: usize = 3;

/// Nothing is loaded, nothing runs: whatever a file's name says, it is text.
const HEAD: &str = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
<style>
.overview { width: 100%; }
.strip { display: flex; flex-wrap: wrap; gap: 2px; list-style: none; margin: 0; padding: 0; align-items: center; }
.strip .faint { font-size: .8rem; margin-right: .4em; }
.mark { border-radius: 3px; color: var(--paper); display: block; font-size: .8rem; font-weight: 700; height: 1.5rem; line-height: 1.5rem; text-align: center; text-decoration: none; width: 1.25rem; }
.as-expected-mark { background: var(--good); }
.not-as-expected-mark { background: var(--bad); }
.inconclusive-mark { background: var(--unsure); }
.unreadable-mark { background: var(--faint); }
.unreadable { color: var(--faint); font-weight: 600; }
.trend { color: var(--ink); display: block; }
.trend path { fill: none; stroke: currentColor; stroke-width: 1.5; }
.trend circle { fill: currentColor; }
.differs { color: var(--bad); font-weight: 600; }
@media (max-width: 45rem) {
  .overview thead { display: none; }
  .overview tr { border-bottom: 1px solid var(--line); display: block; padding: .6rem 0; }
  .overview td, .overview th { border: 0; display: block; padding: .1rem 0; }
  .overview td[data-head]::before { color: var(--faint); content: attr(data-head) \": \"; }
}
@media print { .mark { border: 1px solid var(--faint); color: var(--ink); background: none; } }
</style>
";

pub fn page(histories: &[History]) -> String {
    let mut sorted: Vec<&History> = histories.iter().collect();
    sorted.sort_by_key(|history| (rank(history), &history.scenario));
    let mut body = format!(
        "<h1>Runs of fencepost</h1>\n<p class=\"lead\">{}</p>\n",
        lead(histories)
    );
    body += "<div class=\"wide\"><table class=\"overview\"><thead><tr><th>scenario</th><th>newest run</th>\
             <th>baseline</th><th>cases as expected</th><th>runs, oldest first</th></tr></thead>\n<tbody>\n";
    body.extend(sorted.iter().map(|history| row(history)));
    body += "</tbody></table></div>\n";
    body += "<p class=\"faint\">Each mark is a run and leads to its page: \
             ✓ as expected, ✗ not as expected, ? inconclusive, – cannot be read.</p>\n";
    body.extend(sorted.iter().map(|history| section(history)));
    document("Runs of fencepost", HEAD, &body)
}

/// The worst first.
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
        let _ = write!(words, " The newest run began at {}.", escaped(&when(last)));
    }
    words
}

fn row(history: &History) -> String {
    let (name, anchor) = (escaped(&history.scenario), anchor(history));
    let newest = history.newest();
    let verdict = newest.map_or("none", |run| mark_of(&run.seen).name);
    let cases = newest.and_then(|run| run.seen.as_ref().ok());
    let cases = cases.map(Seen::cases_as_expected);
    let cases = cases.unwrap_or_else(|| "<span class=\"faint\">unknown</span>".to_owned());
    format!(
        "<tr data-scenario=\"{name}\" data-verdict=\"{verdict}\"><th scope=\"row\"><a href=\"#{anchor}\">{name}</a></th>\
         <td>{}</td><td data-head=\"baseline\">{}</td><td data-head=\"cases as expected\">{cases}</td><td>{}</td></tr>\n",
        newest.map_or(
            "<span class=\"faint\">no run yet</span>".to_owned(),
            newest_words
        ),
        baseline_words(history),
        strip(history),
    )
}

fn newest_words(run: &Run) -> String {
    let with = match &run.seen {
        Ok(seen) if !seen.is_plain() => format!(", with {}", seen.with.join(", ")),
        _ => String::new(),
    };
    let when = escaped(&(when(&run.name) + &with));
    let link = escaped(&run.link);
    format!(
        "{} <small><a href=\"{link}\">{when}</a></small>",
        mark_of(&run.seen).badge()
    )
}

fn baseline_words(history: &History) -> String {
    let words = match &history.baseline {
        None => return "<span class=\"faint\">none</span>".to_owned(),
        Some(Ok(seen)) => Mark::of(seen.verdict).badge(),
        Some(Err(reason)) => format!("<span class=\"unreadable\">{}</span>", escaped(reason)),
    };
    match history.differs() {
        Some(true) => words + " <span class=\"differs\">differs</span>",
        _ => words,
    }
}

fn section(history: &History) -> String {
    let name = escaped(&history.scenario);
    let mut text = format!("<h2 id=\"{}\">{name}</h2>\n", anchor(history));
    text += &complaints(history);
    let remarks = history.remarks.iter();
    text.extend(remarks.map(|remark| format!("<p class=\"faint\">{}</p>\n", escaped(remark))));
    text += &cases(history);
    text += &trends(history);
    text += &all_runs(history);
    text
}

/// Runs that cannot be read, the newest first.
fn complaints(history: &History) -> String {
    let bad = history.runs.iter().rev();
    let bad: Vec<(&str, &String)> = bad
        .filter_map(|run| Some((run.name.as_str(), run.seen.as_ref().err()?)))
        .collect();
    if bad.is_empty() {
        return String::new();
    }
    let told = bad.iter().take(REASONS).map(|(name, reason)| {
        let (name, reason) = (escaped(&when(name)), escaped(reason));
        format!("<p>The run of {name} cannot be read: {reason}.</p>\n")
    });
    let told: String = told.collect();
    let more = match bad.len().saturating_sub(REASONS) {
        0 => String::new(),
        more => format!("<p>So it is with {more} more, listed below.</p>\n"),
    };
    format!("<div class=\"warning\">\n{told}{more}</div>\n")
}

/// How each case stands in the newest run that can be read, beside the baseline.
fn cases(history: &History) -> String {
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
    if names.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "<div class=\"wide\"><table><thead><tr><th>case</th><th>{called}</th><th>baseline</th></tr></thead>\n<tbody>\n"
    );
    for name in names {
        let (new, old) = (standing(newest, name), standing(baseline, name));
        let name = escaped(name);
        let _ = writeln!(
            text,
            "<tr data-case=\"{name}\"><td>{name}</td><td>{new}</td><td>{old}</td></tr>"
        );
    }
    text + "</tbody></table></div>\n"
}

fn standing(seen: Option<&Seen>, case: &str) -> String {
    let Some(seen) = seen else {
        return "<span class=\"faint\">none</span>".to_owned();
    };
    match seen.cases.get(case) {
        Some(outcome) => Mark::of(*outcome).badge() + &lock_words(seen, case),
        None if seen.unfinished.contains(case) => {
            "<span class=\"faint\">did not finish</span>".to_owned()
        }
        None => "<span class=\"faint\">absent</span>".to_owned(),
    }
}

/// What became of the lock, where the result says it.
fn lock_words(seen: &Seen, case: &str) -> String {
    let lock = seen.locks.get(case);
    let words = lock.map(|outcome| match outcome {
        LockOutcome::Broken => " <span class=\"differs\">lock broken</span>".to_owned(),
        other => format!(" <small>lock {}</small>", lock::word(*other)),
    });
    words.unwrap_or_default()
}

/// The newest first, as people look for them.
fn all_runs(history: &History) -> String {
    if history.runs.is_empty() {
        return "<p class=\"faint\">There is no run of it yet.</p>\n".to_owned();
    }
    let rows: String = history.runs.iter().rev().map(run_row).collect();
    let older = match history.older {
        0 => String::new(),
        older => {
            format!("<p class=\"faint\">{older} older runs are in the folder and not listed.</p>\n")
        }
    };
    let count = history.runs.len();
    let title = if count == 1 {
        "The run".to_owned()
    } else {
        format!("All {count} runs")
    };
    format!(
        "<details><summary>{title}</summary>\n<div class=\"wide\"><table><thead><tr><th>began</th><th>verdict</th>\
         <th>cases as expected</th><th class=\"number\">seed</th><th>remarks</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n{older}</details>\n"
    )
}

fn run_row(run: &Run) -> String {
    let (cases, seed, remarks) = match &run.seen {
        Err(reason) => (String::new(), String::new(), reason.clone()),
        Ok(seen) => {
            let unfinished = seen.unfinished.iter();
            let unfinished = unfinished.map(|case| format!("{case} did not finish"));
            let with = seen.with.iter().map(|with| format!("with {with}"));
            let remarks: Vec<String> = unfinished.chain(with).collect();
            (
                seen.cases_as_expected(),
                seen.seed.to_string(),
                remarks.join(", "),
            )
        }
    };
    let (link, when) = (escaped(&run.link), escaped(&when(&run.name)));
    let (badge, remarks) = (mark_of(&run.seen).badge(), escaped(&remarks));
    format!(
        "<tr><td><a href=\"{link}\">{when}</a></td><td>{badge}</td><td>{cases}</td><td class=\"number\">{seed}</td><td>{remarks}</td></tr>\n"
    )
}

/// Letters, digits and `-` alone: names come from folders. What is left out is told
/// apart by its number.
fn anchor(history: &History) -> String {
    let plain = |c: char| match c.is_ascii_alphanumeric() || c == '-' {
        true => c.to_string(),
        false => format!("_{:x}", c as u32),
    };
    let name: String = history.scenario.chars().map(plain).collect();
    format!("scenario-{name}")
}
