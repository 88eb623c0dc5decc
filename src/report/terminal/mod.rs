//! The final screen: verdict, explanation, and where the files are.

mod case;
mod fit;
#[cfg(test)]
mod tests;

use super::*;
use case::CaseLines;
pub use case::finding_words;
use fit::{Fitted, fit};
use std::borrow::Borrow;
use std::path::Path;

/// The text about one scenario fits on one screen, with a line of `check` below it. The tables
/// of a load are additional.
const MOST_LINES: usize = 28;
/// The style for files, which have no limit of columns.
const QUOTED: Look = Look {
    color: false,
    width: usize::MAX,
    all: false,
};
/// The number of names in one line.
const NAMES_SHOWN: usize = 3;

pub fn screen(run: &RunRecord, look: &Look) -> String {
    screen_above("", run, look)
}

/// Returns the same, with other text below it on the same screen.
pub fn screen_above(below: &str, run: &RunRecord, look: &Look) -> String {
    let cases: Vec<CaseLines> = run
        .cases
        .iter()
        .map(|case| CaseLines::new(case, look))
        .collect();
    let closing = closing(run, look);
    let room = if look.all {
        usize::MAX
    } else {
        let beyond_one = below.lines().count().saturating_sub(1);
        MOST_LINES.saturating_sub(closing.lines().count() + beyond_one)
    };
    let mut order: Vec<usize> = (0..cases.len()).collect();
    order.sort_by_key(|place| run.cases[*place].verdict.outcome);
    let mut fitted = fit(&cases, &order, room);
    if !fitted.shortened.is_empty() {
        // The note that something is left out needs room too.
        let names: Vec<String> = cases.iter().map(|case| case.name.clone()).collect();
        let said = left_out(&names, run, look).lines().count();
        fitted = fit(&cases, &order, room.saturating_sub(said));
    }
    let Fitted { text, shortened } = fitted;
    let mut tables = comparison::text(run, look.width);
    if tables.is_empty() || look.all {
        tables.insert_str(0, &load::table(run, look.width));
    }
    let left_out = left_out(&shortened, run, look);
    text + &tables + &closing + &left_out + below
}

/// Formats the words of a command below a screen, with the same width.
pub fn remark(words: &str, look: &Look) -> String {
    wrapped(words, "", look.width)
}

/// Returns a single case, as a test report quotes it.
pub fn case_text(case: &CaseResult) -> String {
    let whole = CaseLines::new(case, &QUOTED);
    joined(std::iter::once(&whole.head).chain(whole.body()), "\n")
}

/// Returns the unmet expectations in one line.
pub fn missed(case: &CaseResult) -> String {
    let findings = case.verdict.findings.iter();
    let missed = findings.filter(|finding| finding.outcome != Outcome::AsExpected);
    joined(missed.map(finding_words), ", ")
}

/// Returns the verdict in one line, for one of many runs.
pub fn line(run: &RunRecord, look: &Look) -> String {
    let words = format!(
        "{}: {} ({} of {} cases as expected){}",
        shown::line(&run.scenario),
        look.outcome(run.verdict()),
        run.cases_as_expected(),
        run.cases.len() + run.unfinished.len(),
        broken_locks(run, look),
    );
    wrapped_painted(&words, "", look.width)
}

/// Names the locks that broke their promises, even if that was expected.
fn broken_locks(run: &RunRecord, look: &Look) -> String {
    let broken = run.cases.iter();
    let broken = broken.filter(|case| lock::outcome(case) == Some(LockOutcome::Broken));
    let broken: Vec<&str> = broken.map(|case| case.name.as_str()).collect();
    if broken.is_empty() {
        return String::new();
    }
    let words = format!("{} in {}", LockOutcome::Broken, some_of(&broken));
    format!(", {}", look.paint(&shown::line(&words), Color::Bad))
}

/// Summarizes many runs, each with its verdict. It names those that are not as expected, and
/// the folder of all results.
pub fn summary(runs: &[(String, Outcome)], results: &Path, look: &Look) -> String {
    let mut by_outcome: BTreeMap<Outcome, Vec<&str>> = BTreeMap::new();
    for (scenario, outcome) in runs {
        by_outcome.entry(*outcome).or_default().push(scenario);
    }
    // The best outcomes come first.
    let all = || by_outcome.iter().rev();
    let counts = all().map(|(outcome, of)| format!("{} {}", of.len(), look.outcome(*outcome)));
    let counts = joined(counts, ", ");
    let mut text = format!("\n{} scenarios: {counts}\n", runs.len());
    for (outcome, names) in all().filter(|(outcome, _)| **outcome != Outcome::AsExpected) {
        let named = format!("{outcome}: {}", names.join(", "));
        text += &wrapped(&named, "  ", look.width);
    }
    let results = results.display().to_string();
    text + &format!("results: {}\n", shown::line(&results))
}

/// Returns the overrides of the scenario's file, one per line.
pub fn overrides(run: &RunRecord) -> Vec<String> {
    let settings = (!run.settings.is_empty()).then(|| format!("with {}", run.settings.join(", ")));
    let mutant = run.mutant.iter();
    let mutant = mutant.map(|mutant| format!("with the defect `{mutant}` switched on"));
    settings.into_iter().chain(mutant).collect()
}

fn closing(run: &RunRecord, look: &Look) -> String {
    let mut text = String::new();
    if !run.unfinished.is_empty() {
        let words = format!("did not finish: {}", some_of(&run.unfinished));
        text += &format!("{}\n", wrapped(&words, "", look.width));
    }
    text += &line(run, look);
    for line in overrides(run) {
        text += &wrapped(&line, "", look.width);
    }
    // A path must be easy to copy, so it is not wrapped.
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
