//! The page of a run: first the verdict, then for each case the expectations, the events and
//! their explanation, and at the end how to repeat the run.

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

use super::*;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use fault_span::{FaultSpan, fault_spans};
use sha2::{Digest, Sha256};
use window::{Window, windows};

/// Everything that the page of a run is made from.
pub struct RunPage<'a> {
    pub run: &'a RunRecord,
    pub about: &'a str,
    /// The scenario's file as it was run.
    pub scenario: &'a str,
    /// The evidence that can be drawn, by name of the case.
    pub evidence: &'a BTreeMap<Name, CaseEvidence>,
    /// File names and contents.
    pub plots: &'a [(String, String)],
    /// The one case that this run was for, if the scenario has others.
    pub only: Option<&'a str>,
    /// Why the run has no complete result, if that is so.
    pub ended_early: Option<String>,
}

/// The record of a case, and the holds that the judge reads in it.
pub struct CaseEvidence {
    pub record: CaseRecord,
    pub held: Vec<Held>,
}

/// The width of the tables of a load, which scroll in their own box on a narrower page.
const COLUMNS: usize = 100;
const SCRIPT: &str = include_str!("script.js");

/// The most bytes of all cases together, and of each other part. They keep the page below 5 MB,
/// whatever was recorded. Every part also limits what it lists and draws, so that no record of
/// a real run reaches these bounds.
const OF_CASES: usize = 3_000_000;
const OF_A_PART: usize = 400_000;

pub fn page(page: &RunPage<'_>) -> String {
    let run = page.run;
    let body = html! {
        (drawing::definitions())
        @let lead = bounded(lead::lead(page));
        @match lead { Some(lead) => (lead), None => header { (no_room()) } }
        @match bounded(services(run)) { Some(part) => (part), None => section { (no_room()) } }
        (cases(page))
        @for part in [loads(page), tables::counts(run), promises::kinds(), ending::ending(page)] {
            @match bounded(part) { Some(part) => (part), None => section { (no_room()) } }
        }
        script { (PreEscaped(SCRIPT)) }
    };
    let title = format!("{}: {}", run.scenario, run.verdict());
    document(&title, &head(), &body)
}

fn bounded(part: Markup) -> Option<Markup> {
    Some(seen(part)).filter(|part| part.0.len() <= OF_A_PART)
}

fn no_room() -> Markup {
    html! { p { "There is no room for this part on one page; result.json has it." } }
}

fn cases(page: &RunPage<'_>) -> Markup {
    let all = &page.run.cases;
    let mut text = String::new();
    for (index, one) in all.iter().enumerate() {
        let section = || case::section(index, one, page.evidence.get(&one.name), all.len());
        let ways: [&dyn Fn() -> Markup; 2] = [&section, &|| case::without_details(index, one)];
        let mut ways = ways.into_iter().map(|way| seen(way()));
        match ways.find(|way| text.len() + way.0.len() <= OF_CASES) {
            Some(way) => text += &way.0,
            None => {
                let more = all.len() - index;
                text += &format!("<p>{more} more cases are in result.json.</p>\n");
                break;
            }
        }
    }
    PreEscaped(text)
}

/// Returns a head that forbids fetching and every script except the page's own, so that no name
/// in a file can do anything.
fn head() -> Markup {
    let hash = BASE64_STANDARD.encode(Sha256::digest(SCRIPT));
    let policy = format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hash}'; \
         base-uri 'none'; form-action 'none'"
    );
    html! {
        meta http-equiv="Content-Security-Policy" content=(policy);
        style { (PreEscaped(include_str!("style.css"))) }
    }
}

/// Shows lock services beside each other, if the scenario compares some.
fn services(run: &RunRecord) -> Markup {
    let tables = comparison::tables(run);
    html! {
        @if !tables.is_empty() {
            section #services {
                h2 { "Services" }
                @for of in tables {
                    @let heads: Vec<&str> = of.heads.iter().map(String::as_str).collect();
                    @let rows: Vec<Vec<Markup>> = of.rows.iter().map(|row| cells(row)).collect();
                    (table::table(&heads, rows, usize::MAX, "result.json"))
                }
            }
        }
    }
}

fn cells(row: &[String]) -> Vec<Markup> {
    let mut cells = row.iter();
    let name = cells.next().map(table::name);
    name.into_iter().chain(cells.map(table::number)).collect()
}

/// Shows the measurements of a load; nothing for a run without one.
fn loads(page: &RunPage<'_>) -> Markup {
    let table = load::table(page.run, COLUMNS);
    html! {
        @if !table.is_empty() || !page.plots.is_empty() {
            section #load {
                h2 { "Load" }
                @for (name, svg) in page.plots {
                    figure class="wide plot" data-plot=(name) { (PreEscaped(svg)) }
                }
                pre { (table.trim_end()) }
            }
        }
    }
}
