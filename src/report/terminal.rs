//! The final screen: verdict, explanation, and where the files are.

use super::load;
use crate::model::{
    CaseResult, Expectations, FaultRow, FaultStage, Finding, Outcome, RunRecord, Story,
};
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
    text.push_str(&load::table(run));
    let as_expected = |case: &&CaseResult| case.verdict.outcome == Outcome::AsExpected;
    let _ = writeln!(
        text,
        "{}: {} ({} of {} cases as expected)",
        run.scenario,
        paint(run.verdict(), color),
        run.cases.iter().filter(as_expected).count(),
        run.cases.len() + run.unfinished.len(),
    );
    if !run.settings.is_empty() {
        let _ = writeln!(text, "with {}", run.settings.join(", "));
    }
    if let Some(mutant) = &run.mutant {
        let _ = writeln!(text, "with the defect `{mutant}` switched on");
    }
    let _ = writeln!(text, "results: {}", run.folder.display());
    text
}

/// A case alone, as a test report quotes it.
pub fn case_text(case: &CaseResult) -> String {
    let mut text = String::new();
    case_screen(&mut text, case, false);
    text.trim_end().to_owned()
}

/// What was expected and did not come, in a line.
pub fn missed(case: &CaseResult) -> String {
    let findings = case.verdict.findings.iter();
    let missed = findings.filter(|finding| finding.outcome != Outcome::AsExpected);
    let missed: Vec<String> = missed.map(finding_words).collect();
    missed.join(", ")
}

fn case_screen(text: &mut String, case: &CaseResult, color: bool) {
    let outcome = paint(case.verdict.outcome, color);
    let fence = match case.notes.is_without_writes() {
        true => String::new(),
        false => format!(" (fence {})", case.fence),
    };
    let _ = writeln!(text, "{}{fence}: {outcome}", case.name);
    let findings: Vec<String> = case.verdict.findings.iter().map(finding_words).collect();
    if !findings.is_empty() {
        let _ = writeln!(text, "  {}", findings.join(", "));
    }
    if let Some(words) = violations_beside(case) {
        let _ = writeln!(text, "  {words}");
    }
    for doubt in &case.verdict.doubts {
        let _ = writeln!(text, "  not certain: {}", doubt.replace('\n', "\n    "));
    }
    let healed = case.faults.iter();
    for fault in healed.filter(|row| row.stage == FaultStage::Healed) {
        let FaultRow { fault, target, .. } = fault;
        let _ = writeln!(
            text,
            "  {fault} of {target} outlived the case and was healed"
        );
    }
    for story in case.judgement.stories.iter().take(STORIES_SHOWN) {
        story_screen(text, case, story);
    }
    // Of a load there may be thousands, and nobody was told to write anything in particular.
    let values = case.notes.values.iter();
    for (key, value) in values.filter(|_| case.notes.load.is_none()) {
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

pub fn finding_words(finding: &Finding) -> String {
    let what = finding.what.replace('_', " ");
    let (found, expected) = (&finding.found, &finding.expected);
    match finding.held {
        true => format!("{what} {found}"),
        false => format!("{what} {found} where {expected} was expected"),
    }
}

/// Violations are told also where nothing is said about them.
fn violations_beside(case: &CaseResult) -> Option<String> {
    let is_about_them = |finding: &Finding| finding.what.starts_with(Expectations::VIOLATIONS);
    let count = case.judgement.violations.len();
    let is_said = case.verdict.findings.iter().any(is_about_them);
    (count > 0 && !is_said).then(|| format!("violations {count}, whatever was expected"))
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
