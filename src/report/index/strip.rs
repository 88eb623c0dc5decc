//! The verdicts of a scenario's last runs in a row, oldest first, each a link.

use super::*;

/// The number of runs that fit into a line of the table.
const SHOWN: usize = 20;

pub fn strip(history: &History) -> Markup {
    let hidden = history.runs.len().saturating_sub(SHOWN);
    let older = hidden + history.older;
    html! {
        ol.strip aria-label={ "runs of " (history.scenario) ", oldest first" } {
            @if older > 0 { li.faint { (older) " older" } }
            @for run in &history.runs[hidden..] {
                @let (mark, words) = (mark_of(&run.seen), words(run));
                li {
                    a class={ "mark " (mark.class) "-mark" } data-verdict=(mark.name)
                        href=(run.link) title=(words) aria-label=(words) { (mark.sign) }
                }
            }
        }
    }
}

/// Describes a run: its time, its verdict, and anything unusual about it.
fn words(run: &Run) -> String {
    let mut words = format!("{}: {}", when(&run.name), mark_of(&run.seen).words);
    match &run.seen {
        Err(reason) => words = words + "; " + reason,
        Ok(seen) => {
            words = words + ", " + &seen.cases_as_expected() + " cases as expected";
            if !seen.unfinished.is_empty() {
                words += ", ended before it was over";
            }
            if !seen.is_plain() {
                words = words + ", with " + &seen.with.join(", ");
            }
        }
    }
    words
}
