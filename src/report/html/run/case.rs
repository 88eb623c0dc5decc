//! One case: the expectations and findings, the drawing, the story.

use super::drawing::{Drawing, draw, legend};
use super::tables::seconds;
use super::*;

/// The most marks on one page; each takes some hundred bytes.
const MARKS_OF_A_PAGE: usize = 2_000;
const MARKS_OF_A_CASE: usize = 360;
/// The most doubts that are shown; further ones only repeat them.
const MOST_DOUBTS: usize = 20;
/// The most letters of one doubt or of one step of a story.
const LONGEST: usize = 2_000;

pub fn section(
    index: usize,
    case: &CaseResult,
    evidence: Option<&CaseEvidence>,
    cases: usize,
) -> Markup {
    let most = (MARKS_OF_A_PAGE / cases.max(1)).clamp(40, MARKS_OF_A_CASE);
    let inner = html! {
        (doubts(case))
        (promises::promises(case))
        (tables::expectations(case))
        @if let Some(evidence) = evidence { (timelines(index, case, evidence, most)) }
        @else { @for story in &case.judgement.stories { (told_story(case, story, None)) } }
        (tables::violations(case))
        (tables::excused(case))
        (tables::faults(case))
        (tables::overlaps(case))
        (tables::values(case))
    };
    titled(index, case, &inner)
}

/// Returns a case for which the page has no room.
pub fn without_details(index: usize, case: &CaseResult) -> Markup {
    titled(
        index,
        case,
        &html! {
            p { "There is no room for this case on one page; result.json has what was found." }
        },
    )
}

fn titled(index: usize, case: &CaseResult, inner: &Markup) -> Markup {
    let verdict = Mark::of(case.verdict.outcome).name;
    html! {
        section.case id={ "case-" (index) } data-case=(case.name) data-verdict=(verdict) {
            h2 {
                (case.name) " " (Mark::of_verdict(&case.verdict).badge())
                @if !case.notes.is_without_writes() { " " small { "fence " (case.fence) } }
            }
            (inner)
        }
    }
}

/// Shows everything that keeps the verdict from being certain, before anything else. The gaps
/// of a record are among its doubts.
fn doubts(case: &CaseResult) -> Markup {
    let doubts = case.verdict.doubts.iter();
    let mut lines = doubts.map(|doubt| format!("{}: {doubt}", lock::certainty(doubt)));
    let first: Vec<String> = lines.by_ref().take(MOST_DOUBTS).collect();
    let more = lines.count();
    let more = (more > 0).then(|| format!("{more} more doubts and gaps are in result.json"));
    html! {
        @if !first.is_empty() {
            div.warning.quiet[lock::is_only_not_offered(&case.verdict)] role="note" {
                @for line in first.iter().chain(&more) {
                    p data-doubt=(case.name) {
                        @for (n, line) in cut(line, LONGEST).split('\n').enumerate() {
                            @if n > 0 { br; }
                            (line)
                        }
                    }
                }
            }
        }
    }
}

fn timelines(index: usize, case: &CaseResult, evidence: &CaseEvidence, most: usize) -> Markup {
    html! {
        @for (number, window) in windows(case, evidence, most).iter().enumerate() {
            @let drawing = draw(window, case, &format!("c{index}-{number}"));
            div.beside.alone[window.stories.is_empty()] {
                div.timeline {
                    (drawing.markup)
                    @if number == 0 { (legend()) }
                    p { small { (remark(case, window)) } }
                    pre.event aria-live="polite" {}
                }
                @for story in &window.stories { (told_story(case, story, Some(&drawing))) }
            }
        }
    }
}

fn remark(case: &CaseResult, window: &Window<'_>) -> String {
    let stretched = "Time is stretched where much happens at once.";
    if window.is_whole {
        return stretched.to_owned();
    }
    let (from, to) = (seconds(case, window.from_ns), seconds(case, window.to_ns));
    let only = window
        .key
        .map_or(String::new(), |key| format!(", only {key}"));
    let (drawn, left_out) = (window.rows(), window.left_out);
    format!(
        "From {from} to {to}{only}: {drawn} rows are drawn, {left_out} of this case are left out. {stretched}"
    )
}

/// Shows a story. Each step links to its mark, if the drawing has one.
fn told_story(case: &CaseResult, story: &Story, drawing: Option<&Drawing>) -> Markup {
    html! {
        div.story.violated[!story.kinds.is_empty()] {
            h3 { (cut(&story.title, LONGEST)) }
            @if !story.kinds.is_empty() { p.faint { (joined(&story.kinds, ", ")) } }
            ol {
                @for step in &story.steps {
                    @let words = cut(&step.concrete, LONGEST);
                    li {
                        time { (seconds(case, step.at_ns)) }
                        @match drawing.and_then(|drawing| drawing.mark_of(step, &story.key)) {
                            Some(mark) => a href={ "#" (mark) } { (words) },
                            None => (words),
                        }
                    }
                }
            }
        }
    }
}
