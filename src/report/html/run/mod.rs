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

/// Bytes of all cases together, and of each other part. So the page has less than 5 MB,
/// whatever was recorded; every part also bounds what it lists and draws, so that only
/// a record that nobody makes by running something comes to this.
const OF_CASES: usize = 3_000_000;
const OF_A_PART: usize = 400_000;

pub fn page(page: &RunPage<'_>) -> String {
    let run = page.run;
    let mut body = drawing::definitions() + &bounded(lead::lead(page), "header");
    body += &cases(page);
    body += &bounded(loads(page), "section");
    body += &bounded(tables::counts(run), "section");
    body += &promises::kinds();
    body += &bounded(ending::ending(page), "section");
    body += &format!("<script>{SCRIPT}</script>\n");
    let title = format!("{}: {}", run.scenario, run.verdict());
    document(&title, &head(), &body)
}

fn bounded(part: String, element: &str) -> String {
    match part.len() > OF_A_PART {
        true => format!(
            "<{element}>\n<p>There is no room for this part on one page; result.json has it.</p>\n</{element}>\n"
        ),
        false => part,
    }
}

fn cases(page: &RunPage<'_>) -> String {
    let all = &page.run.cases;
    let mut text = String::new();
    for (index, one) in all.iter().enumerate() {
        let section = case::section(index, one, page.evidence.get(&one.name), all.len());
        let without_details = case::without_details(index, one);
        let mut ways = [section, without_details].into_iter();
        match ways.find(|way| text.len() + way.len() <= OF_CASES) {
            Some(way) => text += &way,
            None => {
                let more = all.len() - index;
                return text + &format!("<p>{more} more cases are in result.json.</p>\n");
            }
        }
    }
    text
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
