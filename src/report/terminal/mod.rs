//! The final screen: verdict, explanation, and where the files are.

mod case;
mod fit;
#[cfg(test)]
mod tests;

use super::grid::{wrapped, wrapped_painted};
use super::look::{Color, Look};
use super::{load, lock, shown};
use crate::model::{CaseResult, LockOutcome, Outcome, RunRecord};
use case::CaseLines;
pub use case::finding_words;
use fit::{Fitted, fit};
use std::borrow::Borrow;
use std::path::Path;

/// What one scenario says fits on one screen, with a line of `check` below it. The tables of a
/// load come on top.
const MOST_LINES: usize = 28;
/// For files, where nobody counts columns.
const QUOTED: Look = Look {
    color: false,
    width: usize::MAX,
    all: false,
};
/// Names in one line.
const NAMES_SHOWN: usize = 3;

pub fn screen(run: &RunRecord, look: &Look) -> String {
    screen_above("", run, look)
}

/// The same, with something below it on the same screen.
pub fn screen_above(below: &str, run: &RunRecord, look: &Look) -> String {
    let cases: Vec<CaseLines> = run
        .cases
        .iter()
        .map(|case| CaseLines::new(case, look))
        .collect();
    let closing = closing(run, look);
    let room = match look.all {
        true => usize::MAX,
        false => {
            let beyond_one = below.lines().count().saturating_sub(1);
            MOST_LINES.saturating_sub(closing.lines().count() + beyond_one)
        }
    };
    let mut order: Vec<usize> = (0..cases.len()).collect();
    order.sort_by_key(|place| run.cases[*place].verdict.outcome);
    let mut fitted = fit(&cases, &order, room);
    if !fitted.shortened.is_empty() {
        // That something is left out takes room too.
        let names: Vec<String> = cases.iter().map(|case| case.name.clone()).collect();
        let said = left_out(&names, run, look).lines().count();
        fitted = fit(&cases, &order, room.saturating_sub(said));
    }
    let Fitted { text, shortened } = fitted;
    let tables = load::table(run, look.width);
    let left_out = left_out(&shortened, run, look);
    text + &tables + &closing + &left_out + below
}

/// What a command says below a screen, as wide as that.
pub fn remark(words: &str, look: &Look) -> String {
    wrapped(words, "", look.width)
}

/// A case alone, as a test report quotes it.
pub fn case_text(case: &CaseResult) -> String {
    let whole = CaseLines::new(case, &QUOTED);
    let lines = std::iter::once(&whole.head).chain(whole.body());
    lines.cloned().collect::<Vec<String>>().join("\n")
}

/// What was expected and did not come, in a line.
pub fn missed(case: &CaseResult) -> String {
    let findings = case.verdict.findings.iter();
    let missed = findings.filter(|finding| finding.outcome != Outcome::AsExpected);
    let missed: Vec<String> = missed.map(finding_words).collect();
    missed.join(", ")
}

/// The verdict in a line, for one of many runs.
pub fn line(run: &RunRecord, look: &Look) -> String {
    let as_expected = |case: &&CaseResult| case.verdict.outcome == Outcome::AsExpected;
    let words = format!(
        "{}: {} ({} of {} cases as expected){}",
        shown::line(&run.scenario),
        look.outcome(run.verdict()),
        run.cases.iter().filter(as_expected).count(),
        run.cases.len() + run.unfinished.len(),
        broken_locks(run, look),
    );
    wrapped_painted(&words, "", look.width)
}

/// A lock that broke its promises is told of also where that was expected.
fn broken_locks(run: &RunRecord, look: &Look) -> String {
    let broken = run.cases.iter();
    let broken = broken.filter(|case| lock::outcome(case) == Some(LockOutcome::Broken));
    let broken: Vec<&str> = broken.map(|case| case.name.as_str()).collect();
    match broken.is_empty() {
        true => String::new(),
        false => {
            let cases = some_of(&broken);
            let words = format!("{} in {cases}", LockOutcome::Broken);
            format!(", {}", look.paint(&shown::line(&words), Color::Bad))
        }
    }
}

/// What many runs came to, each with its verdict; those that are not as expected by name,
/// and where all of them are.
pub fn summary(runs: &[(String, Outcome)], results: &Path, look: &Look) -> String {
    let of = |outcome: Outcome| {
        let runs = runs.iter().filter(move |(_, verdict)| *verdict == outcome);
        runs.map(|(scenario, _)| scenario.as_str())
            .collect::<Vec<_>>()
    };
    let all = [
        Outcome::AsExpected,
        Outcome::Inconclusive,
        Outcome::NotAsExpected,
    ];
    let counts = all.into_iter().filter(|outcome| !of(*outcome).is_empty());
    let counts = counts.map(|outcome| format!("{} {}", of(outcome).len(), look.outcome(outcome)));
    let counts: Vec<String> = counts.collect();
    let mut text = format!("\n{} scenarios: {}\n", runs.len(), counts.join(", "));
    for outcome in [Outcome::Inconclusive, Outcome::NotAsExpected] {
        let names = of(outcome);
        if !names.is_empty() {
            text += &wrapped(
                &format!("{outcome}: {}", names.join(", ")),
                "  ",
                look.width,
            );
        }
    }
    let results = results.display().to_string();
    text + &format!("results: {}\n", shown::line(&results))
}

fn closing(run: &RunRecord, look: &Look) -> String {
    let mut text = String::new();
    if !run.unfinished.is_empty() {
        let words = format!("did not finish: {}", some_of(&run.unfinished));
        text += &format!("{}\n", wrapped(&words, "", look.width));
    }
    text += &line(run, look);
    if !run.settings.is_empty() {
        text += &wrapped(&format!("with {}", run.settings.join(", ")), "", look.width);
    }
    if let Some(mutant) = &run.mutant {
        text += &format!("with the defect `{}` switched on\n", shown::line(mutant));
    }
    // A path is there to be copied, and stays in one piece.
    let folder = run.folder.display().to_string();
    text + &format!("results: {}\n", shown::line(&folder))
}

fn left_out(shortened: &[String], run: &RunRecord, look: &Look) -> String {
    if shortened.is_empty() {
        return String::new();
    }
    let words = format!(
        "shortened: {}; whole: fencepost check {} --all",
        some_of(shortened),
        run.folder.display()
    );
    wrapped(&words, "", look.width)
}

fn some_of(names: &[impl Borrow<str>]) -> String {
    let shown = names[..names.len().min(NAMES_SHOWN)].join(", ");
    match names.len().saturating_sub(NAMES_SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
