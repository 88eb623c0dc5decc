//! The verdicts of a scenario's last runs in a row, oldest first, each a link.

use super::when::when;
use super::{History, Run, mark_of};
use crate::report::markup::escaped;

/// As many as fit into a line of the table.
const SHOWN: usize = 20;

pub fn strip(history: &History) -> String {
    let hidden = history.runs.len().saturating_sub(SHOWN);
    let marks: String = history.runs.iter().skip(hidden).map(mark).collect();
    let older = hidden + history.older;
    let before = match older {
        0 => String::new(),
        older => format!("<li class=\"faint\">{older} older</li>"),
    };
    let name = escaped(&history.scenario);
    format!("<ol class=\"strip\" aria-label=\"runs of {name}, oldest first\">{before}{marks}</ol>")
}

fn mark(run: &Run) -> String {
    let mark = mark_of(&run.seen);
    let words = escaped(&words(run));
    let link = escaped(&run.link);
    let (class, sign, name) = (mark.class, mark.sign, mark.name);
    format!(
        "<li><a class=\"mark {class}-mark\" data-verdict=\"{name}\" href=\"{link}\" title=\"{words}\" aria-label=\"{words}\">{sign}</a></li>"
    )
}

/// When, what it came to, and whatever is odd about it.
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
