//! A difference for the page of a CI job.

use super::human::{in_one_run_only, measured_to_show, measured_words, words};
use super::*;
use crate::report::markup::{cell, escaped};

pub fn page(difference: &Difference, all: bool) -> String {
    let changed = match difference.verdict_changed {
        true => "**a verdict changed**",
        false => "the same verdicts",
    };
    let mut text = format!("### {}: {changed}\n", cell(&difference.scenario));
    text += "\n| case | old | new |\n|---|---|---|\n";
    for verdict in &difference.verdicts {
        let [old, new] = verdict.cells();
        let new = match verdict.is_changed() {
            true => format!("**{new}**"),
            false => new,
        };
        let _ = writeln!(text, "| {} | {old} | {new} |", cell(&verdict.case));
    }
    text += &changes("Not the same conditions", &difference.conditions);
    text += &changes("Judged otherwise", &difference.findings);
    let lines = std::iter::once(measured_words(difference)).chain(in_one_run_only(difference));
    for line in lines {
        let _ = writeln!(text, "\n{}", cell(&line));
    }
    text.push('\n');
    if measured_to_show(difference, all).next().is_some() {
        text += "| case | measurement | old | new | ratio |\n|---|---|--:|--:|--:|\n";
    }
    for measured in measured_to_show(difference, all) {
        let ratio = match measured.beyond {
            true => format!("**{}**", measured.ratio_words()),
            false => measured.ratio_words(),
        };
        let (old, new) = (
            measured.written(measured.old),
            measured.written(measured.new),
        );
        let (case, what) = (cell(&measured.case), cell(&measured.what));
        let _ = writeln!(text, "| {case} | {what} | {old} | {new} | {ratio} |");
    }
    text += &changes("Not the same environment", &difference.environment);
    text
}

/// Returns a difference in a folded block: one line, and the details behind it.
pub fn folded(difference: &Difference) -> String {
    let title = format!("{}: {}", difference.scenario, difference.headline());
    let (title, page) = (escaped(&shown::line(&title)), page(difference, false));
    format!("<details><summary>{title}</summary>\n\n{page}\n</details>\n")
}

fn changes(title: &str, changes: &[Change]) -> String {
    if changes.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{title}:\n\n| case | what | old | new |\n|---|---|---|---|\n");
    for change in changes {
        let case = cell(change.case.as_deref().unwrap_or_default());
        let (old, new) = (cell(&words(&change.old)), cell(&words(&change.new)));
        let what = cell(&change.what);
        let _ = writeln!(text, "| {case} | {what} | {old} | {new} |");
    }
    text
}
