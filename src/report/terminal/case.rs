//! What a person wants to know about one case, line by line.

use crate::model::{CaseResult, Expectations, FaultRow, FaultStage, Finding, Story, StoryStep};
use crate::report::grid::{hung, wrapped};
use crate::report::look::Look;

/// Stories shown per case; the result has them all.
const STORIES_SHOWN: usize = 1;
const INDENT: &str = "  ";

/// A case in parts, the more important ones first.
pub struct CaseLines {
    pub name: String,
    /// The verdict: always shown.
    pub head: String,
    /// What was expected and found, and what is in doubt.
    pub found: Vec<String>,
    /// How it came to that, and what stands at the end.
    pub story: Vec<String>,
}

impl CaseLines {
    pub fn new(case: &CaseResult, look: &Look) -> CaseLines {
        CaseLines {
            name: case.name.clone(),
            head: head(case, look),
            found: lines(&found(case, look.width)),
            story: lines(&story(case, look)),
        }
    }

    /// So many of the lines below the head.
    pub fn body(&self) -> impl Iterator<Item = &String> {
        self.found.iter().chain(&self.story)
    }
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

fn head(case: &CaseResult, look: &Look) -> String {
    let outcome = look.outcome(case.verdict.outcome);
    let fence = match case.notes.is_without_writes() {
        true => String::new(),
        false => format!(" (fence {})", case.fence),
    };
    format!("{}{fence}: {outcome}", case.name)
}

fn found(case: &CaseResult, width: usize) -> String {
    let findings: Vec<String> = case.verdict.findings.iter().map(finding_words).collect();
    let mut text = wrapped(&findings.join(", "), INDENT, width);
    if let Some(words) = violations_beside(case) {
        text += &wrapped(&words, INDENT, width);
    }
    for doubt in &case.verdict.doubts {
        let mut lines = doubt.lines();
        let first = lines.next().unwrap_or_default();
        text += &wrapped(&format!("not certain: {first}"), INDENT, width);
        // What a container printed last stays in its lines.
        text.extend(lines.map(|line| format!("    {line}\n")));
    }
    let healed = case.faults.iter();
    for fault in healed.filter(|row| row.stage == FaultStage::Healed) {
        let FaultRow { fault, target, .. } = fault;
        let words = format!("{fault} of {target} outlived the case and was healed");
        text += &wrapped(&words, INDENT, width);
    }
    text
}

fn story(case: &CaseResult, look: &Look) -> String {
    let stories = &case.judgement.stories;
    let shown = match look.all {
        true => stories.len(),
        false => STORIES_SHOWN,
    };
    let told = stories.iter().take(shown);
    let mut text: String = told
        .map(|story| one_story(case, story, look.width))
        .collect();
    match stories.len().saturating_sub(shown) {
        0 => {}
        1 => text += "  and one more, in the result\n",
        more => text += &format!("  and {more} more, in the result\n"),
    }
    // Of a load there may be thousands, and nobody was told to write anything in particular.
    let values = case.notes.values.iter();
    for (key, value) in values.filter(|_| case.notes.load.is_none()) {
        let value = String::from_utf8_lossy(value.as_bytes());
        text += &wrapped(&format!("{key} holds {value}"), INDENT, look.width);
    }
    text
}

fn one_story(case: &CaseResult, story: &Story, width: usize) -> String {
    let kinds: Vec<String> = story.kinds.iter().map(|kind| kind.to_string()).collect();
    let title = match kinds.is_empty() {
        true => "the stale write that was refused".to_owned(),
        false => format!("violation: {}", kinds.join(", ")),
    };
    let step = |step: &StoryStep| {
        let seconds = case.millis_since_start(step.at_ns) / 1_000.0;
        hung(&format!("    {seconds:>7.3} s  "), &step.concrete, width)
    };
    let steps = story.steps.iter().map(step);
    wrapped(&title, INDENT, width) + &steps.collect::<String>()
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
