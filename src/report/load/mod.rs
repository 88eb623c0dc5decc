//! What a load came to, as a table for the terminal.

mod contend;
mod fairness;
mod keyspace;
mod words;

use crate::model::{CaseResult, LoadRecord, RunRecord};
use crate::report::grid::wrapped;

const WIDTH: usize = 100;
const INDENT: &str = "  ";

/// Empty for a run without load.
pub fn table(run: &RunRecord) -> String {
    let loads: Vec<(&CaseResult, &LoadRecord)> = run
        .cases
        .iter()
        .filter_map(|case| Some((case, case.notes.load.as_ref()?)))
        .collect();
    let mut text = String::new();
    for (case, load) in &loads {
        text += &format!("{}\n", case.name);
        if !load.steps.is_empty() {
            text += &contend::table(&load.steps);
        }
        if let Some(keyspace) = &load.keyspace {
            text += &keyspace::table(keyspace);
        }
        if let Some(reason) = &load.partial {
            text += &wrapped(&format!("! partial: {reason}"), INDENT, WIDTH);
        }
        text.push('\n');
    }
    text += &fairness::table(&loads);
    text
}

#[cfg(test)]
mod tests;
