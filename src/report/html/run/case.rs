//! One case: what was expected beside what was found, the drawing, the story.

use super::CaseEvidence;
use super::drawing::{Drawing, draw, legend};
use super::tables::{self, seconds};
use super::window::{Window, windows};
use crate::model::{CaseResult, Story};
use crate::report::mark::Mark;
use crate::report::markup::{element, escaped, opened};

/// Marks on one page: some hundred bytes each.
const MARKS_OF_A_PAGE: usize = 2_000;
const MARKS_OF_A_CASE: usize = 360;

pub fn section(
    index: usize,
    case: &CaseResult,
    evidence: Option<&CaseEvidence>,
    cases: usize,
) -> String {
    let outcome = case.verdict.outcome;
    let attributes: [(&str, &dyn std::fmt::Display); 4] = [
        ("class", &"case"),
        ("id", &format!("case-{index}")),
        ("data-case", &case.name),
        ("data-verdict", &Mark::of(outcome).name),
    ];
    let mut text = opened("section", &attributes) + ">\n";
    let fence = match case.notes.is_without_writes() {
        true => String::new(),
        false => format!(" <small>fence {}</small>", case.fence),
    };
    text += &format!(
        "<h2>{} {}{fence}</h2>\n",
        escaped(&case.name),
        Mark::of(outcome).badge()
    );
    text += &doubts(case);
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
    text += &tables::faults(case);
    text += &tables::overlaps(case);
    text += &tables::values(case);
    text + "</section>\n"
}

/// Everything that keeps the verdict from being certain, before anything else.
fn doubts(case: &CaseResult) -> String {
    let doubts = &case.verdict.doubts;
    let gaps = case.notes.gaps.iter().filter(|gap| !doubts.contains(gap));
    let lines = doubts.iter().map(|doubt| format!("not certain: {doubt}"));
    let lines = lines.chain(gaps.map(|gap| format!("the record has a gap: {gap}")));
    let lines: String = lines
        .map(|line| {
            element(
                "p",
                &[("data-doubt", &case.name)],
                &escaped(&line).replace('\n', "<br>"),
            )
        })
        .collect();
    match lines.is_empty() {
        true => lines,
        false => element("div", &[("class", &"warning"), ("role", &"note")], &lines) + "\n",
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
    let (class, title) = match kinds.is_empty() {
        true => ("story", "The stale write that was refused".to_owned()),
        false => ("story violated", format!("Violation: {}", kinds.join(", "))),
    };
    let steps = story.steps.iter().map(|step| {
        let words = escaped(&step.concrete);
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
        "<div class=\"{class}\">\n<h3>{}</h3>\n<ol>\n{}</ol>\n</div>\n",
        escaped(&title),
        steps.collect::<String>()
    )
}
