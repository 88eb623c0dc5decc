//! One case: what was expected beside what was found, the drawing, the story.

use super::CaseEvidence;
use super::drawing::{Drawing, draw, legend};
use super::promises;
use super::tables::{self, seconds};
use super::window::{Window, windows};
use crate::model::{CaseResult, Doubt, DoubtReason, Gap, Story};
use crate::report::lock;
use crate::report::mark::Mark;
use crate::report::markup::{cut, element, escaped, opened};
use std::collections::HashSet;

/// Marks on one page: some hundred bytes each.
const MARKS_OF_A_PAGE: usize = 2_000;
const MARKS_OF_A_CASE: usize = 360;
/// More doubts than this say the same again.
const MOST_DOUBTS: usize = 20;
/// Letters of one doubt, of one step of a story.
const LONGEST: usize = 2_000;

pub fn section(
    index: usize,
    case: &CaseResult,
    evidence: Option<&CaseEvidence>,
    cases: usize,
) -> String {
    let mut text = head(index, case) + &doubts(case);
    text += &promises::promises(case);
    text += &tables::expectations(case);
    if let Some(evidence) = evidence {
        let most = (MARKS_OF_A_PAGE / cases.max(1)).clamp(40, MARKS_OF_A_CASE);
        text += &timelines(index, case, evidence, most);
    } else {
        let told = case.judgement.stories.iter();
        let told = told.map(|story| told_story(case, story, None));
        text += &told.collect::<String>();
    }
    text += &tables::violations(case);
    text += &tables::excused(case);
    text += &tables::faults(case);
    text += &tables::overlaps(case);
    text += &tables::values(case);
    text + "</section>\n"
}

/// What is left of a case that does not fit on the page.
pub fn without_details(index: usize, case: &CaseResult) -> String {
    head(index, case)
        + "<p>There is no room for this case on one page; result.json has what was found.</p>\n</section>\n"
}

fn head(index: usize, case: &CaseResult) -> String {
    let outcome = case.verdict.outcome;
    let attributes: [(&str, &dyn std::fmt::Display); 4] = [
        ("class", &"case"),
        ("id", &format!("case-{index}")),
        ("data-case", &case.name),
        ("data-verdict", &Mark::of(outcome).name),
    ];
    let fence = match case.notes.is_without_writes() {
        true => String::new(),
        false => format!(" <small>fence {}</small>", case.fence),
    };
    format!(
        "{}>\n<h2>{} {}{fence}</h2>\n",
        opened("section", &attributes),
        escaped(&case.name),
        Mark::of_verdict(&case.verdict).badge()
    )
}

/// Everything that keeps the verdict from being certain, before anything else.
fn doubts(case: &CaseResult) -> String {
    let doubts = &case.verdict.doubts;
    let said: HashSet<&str> = doubts.iter().map(|doubt| doubt.text.as_str()).collect();
    let is_said = |gap: &&Gap| said.contains(gap.text.as_str());
    let gaps = case.notes.gaps.iter().filter(|gap| !is_said(gap));
    let words = |doubt: &Doubt| match doubt.reason {
        DoubtReason::NotOffered => format!("not offered: {doubt}"),
        _ => format!("not certain: {doubt}"),
    };
    let lines = doubts.iter().map(words);
    let mut lines = lines.chain(gaps.map(|gap| format!("the record has a gap: {gap}")));
    let first: Vec<String> = lines.by_ref().take(MOST_DOUBTS).collect();
    let more = lines.count();
    let more = (more > 0).then(|| format!("{more} more doubts and gaps are in result.json"));
    let lines: String = first
        .iter()
        .chain(&more)
        .map(|line| {
            element(
                "p",
                &[("data-doubt", &case.name)],
                &escaped(&cut(line, LONGEST)).replace('\n', "<br>"),
            )
        })
        .collect();
    match lines.is_empty() {
        true => lines,
        false => {
            let class = match lock::is_only_not_offered(&case.verdict) {
                true => "warning quiet",
                false => "warning",
            };
            element("div", &[("class", &class), ("role", &"note")], &lines) + "\n"
        }
    }
}

fn timelines(index: usize, case: &CaseResult, evidence: &CaseEvidence, most: usize) -> String {
    let mut text = String::new();
    for (number, window) in windows(case, evidence, most).iter().enumerate() {
        let drawing = draw(window, case, &format!("c{index}-{number}"));
        let stories: String = window
            .stories
            .iter()
            .map(|story| told_story(case, story, Some(&drawing)))
            .collect();
        let alone = if stories.is_empty() { " alone" } else { "" };
        text += &format!(
            "<div class=\"beside{alone}\">\n<div class=\"timeline\">\n{}{}{}<pre class=\"event\" aria-live=\"polite\"></pre>\n</div>\n{stories}</div>\n",
            drawing.markup,
            if number == 0 { legend() } else { String::new() },
            remark(case, window),
        );
    }
    text
}

fn remark(case: &CaseResult, window: &Window<'_>) -> String {
    let mut words = "Time is stretched where much happens at once.".to_owned();
    if !window.is_whole {
        words = format!(
            "From {} to {}{}: {} rows are drawn, {} of this case are left out. {words}",
            seconds(case, window.from_ns),
            seconds(case, window.to_ns),
            window
                .key
                .map_or(String::new(), |key| format!(", only {key}")),
            window.rows(),
            window.left_out,
        );
    }
    format!("<p><small>{}</small></p>\n", escaped(&words))
}

/// Each step is a link to its mark, where the drawing has one.
fn told_story(case: &CaseResult, story: &Story, drawing: Option<&Drawing>) -> String {
    let kinds: Vec<&str> = story.kinds.iter().map(|kind| kind.name()).collect();
    let (class, kinds) = match kinds.is_empty() {
        true => ("story", String::new()),
        false => {
            let kinds = kinds.join(", ");
            let words = element("p", &[("class", &"faint")], &escaped(&kinds));
            ("story violated", words + "\n")
        }
    };
    let steps = story.steps.iter().map(|step| {
        let words = escaped(&cut(&step.concrete, LONGEST));
        let mark = drawing.and_then(|drawing| drawing.mark_of(step, &story.key));
        let words = match mark {
            Some(mark) => element("a", &[("href", &format!("#{mark}"))], &words),
            None => words,
        };
        format!(
            "<li><time>{}</time>{words}</li>\n",
            seconds(case, step.at_ns)
        )
    });
    format!(
        "<div class=\"{class}\">\n<h3>{}</h3>\n{kinds}<ol>\n{}</ol>\n</div>\n",
        escaped(&cut(&story.title, LONGEST)),
        steps.collect::<String>()
    )
}
