//! One case for a person, line by line.

use super::*;

/// The number of stories shown per case; the result has all of them.
const STORIES_SHOWN: usize = 1;
const INDENT: &str = "  ";

/// The lines of a case in parts, the more important ones first.
pub struct CaseLines {
    pub name: String,
    /// The verdict, which is always shown.
    pub head: String,
    /// The expectations and findings, the outcome of the lock, and the doubts.
    pub found: Vec<String>,
    /// The explanation, and the final values.
    pub story: Vec<String>,
}

impl CaseLines {
    pub fn new(case: &CaseResult, look: &Look) -> CaseLines {
        let (head, below) = head(case, look);
        CaseLines {
            name: case.name.to_string(),
            head,
            found: lines(&(below + &found(case, look))),
            story: lines(&story(case, look)),
        }
    }

    /// Returns the lines below the head.
    pub fn body(&self) -> impl Iterator<Item = &String> {
        self.found.iter().chain(&self.story)
    }
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

/// Returns whether the scenario came out as expected, and whether the lock kept its promises:
/// in one line if that fits, otherwise in two.
fn head(case: &CaseResult, look: &Look) -> (String, String) {
    let outcome = match lock::is_only_not_offered(&case.verdict) {
        true => look.paint("inconclusive (not offered)", Color::Calm),
        false => look.outcome(case.verdict.outcome),
    };
    let fence = match case.notes.is_without_writes() {
        true => String::new(),
        false => format!(" (fence {})", case.fence),
    };
    let head = format!("{}{fence}: {outcome}", shown::line(&case.name));
    let Some((summary, kept)) = lock::summary(case).zip(lock::outcome(case)) else {
        return (head, String::new());
    };
    let summary = match kept {
        LockOutcome::Kept => summary,
        LockOutcome::Broken => look.paint(&summary, Color::Bad),
        LockOutcome::Excused | LockOutcome::NotTested => look.paint(&summary, Color::Calm),
    };
    match columns(&head) + 2 + columns(&summary) <= look.width {
        true => (format!("{head}, {summary}"), String::new()),
        false => (head, wrapped_painted(&summary, INDENT, look.width)),
    }
}

/// Describes the lock. For a good case with a good lock, the head is enough.
fn about_the_lock(case: &CaseResult, look: &Look) -> String {
    let Some(kept) = lock::outcome(case) else {
        return String::new();
    };
    let is_good = kept == LockOutcome::Kept && case.verdict.outcome == Outcome::AsExpected;
    let lines = lock::details(&case.judgement).into_iter();
    let lines = lines.filter(|_| look.all || !is_good);
    lines
        .map(|line| wrapped(&line, INDENT, look.width))
        .collect()
}

fn found(case: &CaseResult, look: &Look) -> String {
    let width = look.width;
    let findings = joined(case.verdict.findings.iter().map(finding_words), ", ");
    let mut text = wrapped(&findings, INDENT, width);
    if let Some(words) = violations_beside(case) {
        text += &wrapped(&words, INDENT, width);
    }
    text += &about_the_lock(case, look);
    for doubt in &case.verdict.doubts {
        let mut lines = doubt.text.lines();
        let first = lines.next().unwrap_or_default();
        let first = format!("{}: {first}", lock::certainty(doubt));
        text += &wrapped(&first, INDENT, width);
        // The last output of a container keeps its lines.
        text.extend(lines.map(|line| format!("    {}\n", shown::lines(line))));
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
    // A load is left out: it may have thousands of values, and no particular one was expected.
    let values = case.notes.values.iter();
    for (key, value) in values.filter(|_| case.notes.load.is_none()) {
        let value = String::from_utf8_lossy(value.as_bytes());
        text += &wrapped(&format!("{key} holds {value}"), INDENT, look.width);
    }
    text
}

fn one_story(case: &CaseResult, story: &Story, width: usize) -> String {
    let step = |step: &StoryStep| {
        let seconds = case.millis_since_start(step.at_ns) / 1_000.0;
        hung(&format!("    {seconds:>7.3} s  "), &step.concrete, width)
    };
    let steps = story.steps.iter().map(step);
    wrapped(&story.title, INDENT, width) + &steps.collect::<String>()
}

pub fn finding_words(finding: &Finding) -> String {
    let what = finding.what.replace('_', " ");
    let (found, expected) = (&finding.found, &finding.expected);
    match finding.held {
        true => format!("{what} {found}"),
        false => format!("{what} {found} where {expected} was expected"),
    }
}

/// Returns the number of violations, if no expectation mentions them.
fn violations_beside(case: &CaseResult) -> Option<String> {
    let is_about_them = |finding: &Finding| finding.what.starts_with(Expectations::VIOLATIONS);
    let count = case.judgement.violations.len();
    let is_said = case.verdict.findings.iter().any(is_about_them);
    (count > 0 && !is_said).then(|| format!("violations {count}, whatever was expected"))
}
