//! The mirror of the YAML file: every value with its place. Checks that need more than one value
//! come later. A value that could not be read is missing here and has been reported, so that the
//! checks can go on with the rest.

mod case;
mod entry;
mod expect;
mod kind;
mod load;
mod lock;
mod own_worker;
mod setup;
mod step;
mod target;
mod topology;
mod worker;

pub use case::{CaseFields, DraftCase};
pub use entry::{DraftEntry, MOST_REPEATS, Repeat};
pub use expect::{DraftExpectations, table as expectations};
pub use kind::{Kind, is_of_the_other};
pub use load::{DraftContend, DraftKeyspace, DraftLoad, Model};
pub use lock::DraftLock;
pub use setup::{DraftSetup, SERVERS};
pub use step::{Bound, DraftEnd, DraftFault, DraftStep};
pub use target::DraftTarget;
pub use topology::{DraftAttach, DraftPlace, DraftTopology};
pub use worker::{DraftWorker, WorkerFields};

use crate::scenario::fields::{Form, fields};
use crate::scenario::form::{later, text, to, words};
use crate::scenario::step::Step;
use crate::scenario::values;
use crate::yaml::{At, Fields, Node, Report, Value, overlay};
use serde_json::json;
use std::fmt::Display;
use std::time::Duration;
use strum::VariantArray;

/// Each case is read with all the fields that the cases share, on each service.
const MOST_CASES: usize = 100;

fields! {
    /// The fields that a scenario has once, beside those that its cases share.
    pub struct HeadFields {
        /// what it is called, and its file with `.yml`
        name: At<String> = name(), required;
        /// the hypothesis, in two sentences a colleague would understand
        about: At<String> = text("a text"), required;
        /// the ways to run it by name, each with fields of its own laid over the scenario's
        cases: Node = later(cases), required;
        /// the lock services to compare, by name: every case is run on each of them, as
        /// `SERVICE-CASE`, with the fields of the service between the scenario's and the case's
        services: Node = later(cases), without("every case is run once");
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
    pub services: Vec<At<String>>,
    pub cases: Vec<DraftCase>,
}

/// Reads a scenario. `settings` are the overrides of this command, laid over every case.
pub fn read(root: &Node, settings: &Node, report: &mut Report) -> Option<Draft> {
    let mut fields = Fields::of(root, "the scenario", report)?;
    let head = HeadFields::take(&mut fields, report);
    fields.know(&CaseFields::NAMES);
    fields.finish(report);
    let few = |cases: &Node| has_few_cases(cases, head.services.as_ref(), report);
    let cases = head.cases.filter(few);
    let read_cases = |base: &Node, service: Option<&At<String>>, report: &mut Report| {
        let read = |name: &At<String>, node: &Node, report: &mut Report| {
            case::read(name, node, base, service, settings, report)
        };
        let cases = cases.as_ref();
        let cases = cases.map(|node| read_named(node, "the cases by name", read, report));
        cases.unwrap_or_default()
    };
    let read_service = |name: &At<String>, node: &Node, report: &mut Report| {
        let what = format!("service `{}`", name.value);
        let mut own = Fields::of(node, &what, report)?;
        own.know(&CaseFields::NAMES);
        own.finish(report);
        let cases = read_cases(&overlay(root, node), Some(name), report);
        Some((name.clone(), cases))
    };
    let services = head.services.as_ref();
    if let Some(services) = services {
        let cases = cases.as_ref().map_or(&[][..], entries_of);
        let own = entries_of(services).iter().chain(cases);
        let bases: Vec<&Node> = own.map(|(_, node)| node).chain([root]).collect();
        refuse_ignored(settings, &bases, report);
    }
    let services =
        services.map(|node| read_named(node, "the services by name", read_service, report));
    let (services, mut cases): (Vec<_>, Vec<DraftCase>) = match services {
        None => (Vec::new(), read_cases(root, None, report)),
        Some(services) => {
            let (names, cases): (Vec<_>, Vec<_>) = services.into_iter().unzip();
            (names, cases.into_iter().flatten().collect())
        }
    };
    cases.retain(|case| !case.setup.lacks_servers);
    if cases.is_empty() {
        // Reports everything else that is wrong all the same.
        setup::read(root, report);
    }
    Some(Draft {
        name: head.name,
        about: head.about,
        services,
        cases,
    })
}

/// Complains about each override that is for one kind of cases, if none of them has its field.
fn refuse_ignored(settings: &Node, bases: &[&Node], report: &mut Report) {
    for (name, node) in entries_of(settings) {
        if kind::is_of_one_kind(&name.value) && !bases.iter().any(|base| has(base, &name.value)) {
            let message = format!("no case has `{}`, so it would change nothing", name.value);
            report.add(node.place, message);
        }
    }
}

/// Returns the entries of a map; none if it is not a map, which is complained about elsewhere.
fn entries_of(node: &Node) -> &[(At<String>, Node)] {
    match &node.value {
        Value::Map(entries) => entries,
        Value::Scalar(_) | Value::List(_) => &[],
    }
}

fn has(node: &Node, field: &str) -> bool {
    entries_of(node).iter().any(|(name, _)| name.value == field)
}

fn has_few_cases(node: &Node, services: Option<&Node>, report: &mut Report) -> bool {
    let length = |node: &Node| entries_of(node).len();
    let count = length(node) * services.map_or(1, length);
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
