//! The final screen: verdict, explanation, and where the files are.

use crate::model::{CaseResult, CountRange, Finding, Outcome, RunRecord, Story};
use std::fmt::Write;

/// Stories shown per case; the result has them all.
const STORIES_SHOWN: usize = 1;

pub fn screen(run: &RunRecord, color: bool) -> String {
    let mut text = String::new();
    for case in &run.cases {
        case_screen(&mut text, case, color);
    }
    for case in &run.unfinished {
        let _ = writeln!(text, "{case}: did not finish\n");
    }
    let as_expected = |case: &&CaseResult| case.verdict.outcome == Outcome::AsExpected;
    let _ = writeln!(
        text,
        "{}: {} ({} of {} cases as expected)",
        run.scenario,
        paint(run.verdict(), color),
        run.cases.iter().filter(as_expected).count(),
        run.cases.len() + run.unfinished.len(),
    );
    if let Some(mutant) = &run.mutant {
        let _ = writeln!(text, "with the defect `{mutant}` switched on");
    }
    let _ = writeln!(text, "results: {}", run.folder.display());
    text
}

fn case_screen(text: &mut String, case: &CaseResult, color: bool) {
    let outcome = paint(case.verdict.outcome, color);
    let _ = writeln!(text, "{} (fence {}): {outcome}", case.name, case.fence);
    let findings: Vec<String> = case.verdict.findings.iter().map(finding_words).collect();
    let _ = writeln!(text, "  {}", findings.join(", "));
    for doubt in &case.verdict.doubts {
        let _ = writeln!(text, "  not certain: {}", doubt.replace('\n', "\n    "));
    }
    for story in case.judgement.stories.iter().take(STORIES_SHOWN) {
        story_screen(text, case, story);
    }
    for (key, value) in &case.notes.values {
        let value = String::from_utf8_lossy(value.as_bytes());
        let _ = writeln!(text, "  {key} holds {value}");
    }
    text.push('\n');
}

fn story_screen(text: &mut String, case: &CaseResult, story: &Story) {
    let kinds: Vec<String> = story.kinds.iter().map(|kind| kind.to_string()).collect();
    let title = match kinds.is_empty() {
        true => "the stale write that was refused".to_owned(),
        false => format!("violation: {}", kinds.join(", ")),
    };
    let _ = writeln!(text, "  {title}");
    for step in &story.steps {
        let seconds = case.millis_since_start(step.at_ns) / 1_000.0;
        let _ = writeln!(text, "    {seconds:>7.3} s  {}", step.concrete);
    }
}

fn finding_words(finding: &Finding) -> String {
    let what = finding.what.replace('_', " ");
    let (found, expected) = (finding.found, &finding.expected);
    match CountRange::parse(expected).is_some_and(|range| range.contains(found)) {
        true => format!("{what} {found}"),
        false => format!("{what} {found} where {expected} was expected"),
    }
}

fn paint(outcome: Outcome, color: bool) -> String {
    let code = match outcome {
        Outcome::AsExpected => "32",
        Outcome::Inconclusive => "33",
        Outcome::NotAsExpected => "31",
    };
    match color {
        true => format!("\u{1b}[{code}m{outcome}\u{1b}[0m"),
        false => outcome.to_string(),
    }
}
