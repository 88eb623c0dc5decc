//! The page of a run: the verdict first, then case by case what was expected,
//! what happened, and how it came to that; at the end how to see it again.

mod case;
mod drawing;
mod ending;
mod fault_span;
mod lead;
mod promises;
mod tables;
#[cfg(test)]
mod tests;
mod window;

use super::document;
use crate::model::{CaseRecord, Held, Name, RunRecord};
use crate::report::load;
use crate::report::markup::{element, escaped};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Everything that the page of a run is made from.
pub struct RunPage<'a> {
    pub run: &'a RunRecord,
    pub about: &'a str,
    /// The scenario's file as it was run.
    pub scenario: &'a str,
    /// What can be drawn of each case, by its name.
    pub evidence: &'a BTreeMap<Name, CaseEvidence>,
    /// File names and contents.
    pub plots: &'a [(String, String)],
    /// The run was for this case alone, though the scenario has others.
    pub only: Option<&'a str>,
    /// Why the run has no whole result, where it has none.
    pub ended_early: Option<String>,
}

/// What a case recorded, and how the judge reads the holds in it.
pub struct CaseEvidence {
    pub record: CaseRecord,
    pub held: Vec<Held>,
}

/// Of the tables of a load, which scroll in a box of their own where a page is narrower.
const COLUMNS: usize = 100;
const SCRIPT: &str = include_str!("script.js");

pub fn page(page: &RunPage<'_>) -> String {
    let run = page.run;
    let mut body = drawing::definitions() + &lead::lead(page);
    let cases = run.cases.iter().enumerate();
    for (index, one) in cases {
        body += &case::section(index, one, page.evidence.get(&one.name), run.cases.len());
    }
    body += &loads(page);
    body += &tables::counts(run);
    body += &promises::kinds();
    body += &ending::ending(page);
    body += &format!("<script>{SCRIPT}</script>\n");
    let title = format!("{}: {}", run.scenario, run.verdict());
    document(&title, &head(), &body)
}

/// Nothing may be fetched, and no script runs but the page's own: whatever a name
/// in a file looks like, it does nothing.
fn head() -> String {
    let hash = BASE64_STANDARD.encode(Sha256::digest(SCRIPT));
    let policy = format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hash}'; \
         base-uri 'none'; form-action 'none'"
    );
    let attributes = [
        ("http-equiv", &"Content-Security-Policy" as _),
        ("content", &policy as _),
    ];
    let policy = crate::report::markup::opened("meta", &attributes);
    format!(
        "{policy}>\n<style>\n{}</style>\n",
        include_str!("style.css")
    )
}

/// What a load measured; nothing for a run without one.
fn loads(page: &RunPage<'_>) -> String {
    let table = load::table(page.run, COLUMNS);
    if table.is_empty() && page.plots.is_empty() {
        return String::new();
    }
    let mut text = "<section id=\"load\">\n<h2>Load</h2>\n".to_owned();
    for (name, svg) in page.plots {
        let attributes = [("class", &"wide plot" as _), ("data-plot", name as _)];
        text += &element("figure", &attributes, svg);
        text.push('\n');
    }
    text += &element("pre", &[], &escaped(table.trim_end()));
    text + "\n</section>\n"
}
