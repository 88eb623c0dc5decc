//! The results of a load, as a table for the terminal.

mod contend;
mod fairness;
mod keyspace;
mod words;

use super::*;

const INDENT: &str = "  ";

/// Returns lines of at most this many columns, where they can be wrapped; empty for a run
/// without load.
pub fn table(run: &RunRecord, width: usize) -> String {
    let loads: Vec<(&CaseResult, &LoadRecord)> = run
        .cases
        .iter()
        .filter_map(|case| Some((case, case.notes.load.as_ref()?)))
        .collect();
    let mut text = String::new();
    for (case, load) in &loads {
        text += &format!("{}\n", case.name);
        if !load.steps.is_empty() {
            text += &contend::table(&load.steps, width);
        }
        if let Some(keyspace) = &load.keyspace {
            text += &keyspace::table(keyspace, width);
        }
        if let Some(reason) = &load.partial {
            text += &wrapped(&format!("! partial: {reason}"), INDENT, width);
        }
        text.push('\n');
    }
    text += &fairness::table(&loads, width);
    text
}

#[cfg(test)]
mod tests;
