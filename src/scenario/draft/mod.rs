//! The mirror of the YAML file: every value with its place. Checks that need more than one value
//! come later. A value that could not be read is missing here and has been reported, so that the
//! checks can go on with the rest.

mod case;
mod entry;
mod expect;
mod kind;
mod load;
mod lock;
mod setup;
mod step;
mod target;
mod worker;

pub use case::{CaseFields, DraftCase};
pub use entry::{DraftEntry, MOST_REPEATS, Repeat};
pub use expect::{DraftExpectations, table as expectations};
pub use kind::Kind;
pub use load::{DraftContend, DraftKeyspace, DraftLoad, Model};
pub use lock::DraftLock;
pub use setup::DraftSetup;
pub use step::{Bound, DraftEnd, DraftFault, DraftStep};
pub use target::DraftTarget;
pub use worker::{DraftWorker, WorkerFields};

use crate::scenario::fields::{Form, fields};
use crate::scenario::form::{later, text, to, words};
use crate::scenario::step::Step;
use crate::scenario::values;
use crate::yaml::{At, Fields, Node, Report, Value};
use serde_json::json;
use std::fmt::Display;
use std::time::Duration;
use strum::VariantArray;

/// Each case is read with all the fields that the cases share.
const MOST_CASES: usize = 50;

fields! {
    /// The fields that a scenario has once, beside those that its cases share.
    pub struct HeadFields {
        /// what it is called, and its file with `.yml`
        name: At<String> = name(), required;
        /// the hypothesis, in two sentences a colleague would understand
        about: At<String> = text("a text"), required;
        /// `fault`: workers and what affects them; `load`: a load instead. Of the scenario, not of
        /// a case
        kind: Node = later(|| json!({ "enum": words(Kind::VARIANTS) })), without("fault");
        /// the ways to run it by name, each with fields of its own laid over the scenario's
        cases: Node = later(cases), required;
    }
}

fn name() -> impl Form<At<String>> {
    let read = |node: &Node, report: &mut Report| node.text("a name", report);
    (read, || to("name"))
}

fn cases() -> serde_json::Value {
    json!({ "type": "object", "minProperties": 1, "additionalProperties": to("case") })
}

pub struct Draft {
    pub name: Option<At<String>>,
    pub about: Option<At<String>>,
    pub cases: Vec<DraftCase>,
}

/// Reads a scenario. `settings` are the overrides of this command, laid over every case.
pub fn read(root: &Node, settings: &Node, report: &mut Report) -> Option<Draft> {
    let mut fields = Fields::of(root, "the scenario", report)?;
    let head = HeadFields::take(&mut fields, report);
    fields.know(&CaseFields::NAMES);
    fields.finish(report);
    let read_case = |name: &At<String>, node: &Node, report: &mut Report| {
        case::read(name, node, root, settings, report)
    };
    let cases = head.cases.filter(|node| has_few_cases(node, report));
    let cases = cases.map(|node| read_named(&node, "the cases by name", read_case, report));
    let cases = cases.unwrap_or_default();
    if cases.is_empty() {
        // Reports everything else that is wrong all the same.
        setup::read(root, report);
    }
    Some(Draft {
        name: head.name,
        about: head.about,
        cases,
    })
}

fn has_few_cases(node: &Node, report: &mut Report) -> bool {
    let count = match &node.value {
        Value::Map(cases) => cases.len(),
        _ => 0,
    };
    if count > MOST_CASES {
        let message =
            format!("a scenario has at most {MOST_CASES} cases, and this one has {count}");
        report.add(node.place, message);
    }
    count <= MOST_CASES
}

/// Reads the nodes, and complains about each value that is there twice.
fn each_once<T: PartialEq + Display>(
    nodes: &[Node],
    report: &mut Report,
    read: impl Fn(&Node, &mut Report) -> Option<At<T>>,
) -> Vec<At<T>> {
    let mut all: Vec<At<T>> = Vec::new();
    for node in nodes {
        let Some(one) = read(node, report) else {
            continue;
        };
        if all.iter().any(|known| known.value == one.value) {
            report.add(one.place, format!("`{}` stands here twice", one.value));
        }
        all.push(one);
    }
    all
}

fn read_named<T>(
    node: &Node,
    what: &str,
    read: impl Fn(&At<String>, &Node, &mut Report) -> Option<T>,
    report: &mut Report,
) -> Vec<T> {
    let entries = node.map(what, report).unwrap_or_default();
    if entries.is_empty() {
        report.add(node.place, format!("expected {what}, found none"));
    }
    entries
        .iter()
        .filter_map(|(name, node)| read(name, node, report))
        .collect()
}
