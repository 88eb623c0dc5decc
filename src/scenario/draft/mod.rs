//! The mirror of the YAML file: every value with its place, nothing checked
//! yet that needs more than one value. What could not be read is missing here
//! and has been reported, so that the checks can go on with the rest.

mod case;
mod cut;
mod entry;
mod expect;
mod kind;
mod load;
mod lock;
mod node_fault;
mod setup;
mod step;
mod toxic;
mod worker;

pub use case::DraftCase;
pub use cut::By;
pub use entry::{DraftEntry, MOST_REPEATS, Repeat};
pub use expect::DraftExpectations;
pub use kind::Kind;
pub use load::{DraftContend, DraftKeyspace, DraftLoad, Model};
pub use lock::DraftLock;
pub use node_fault::{Bound, MOST_PPM};
pub use setup::DraftSetup;
pub use step::{Befalls, DraftAction, DraftFault, DraftStep};
pub use toxic::ToxicType;
pub use worker::{DraftWorker, MOST_COPIES, MOST_NESTED};

use crate::yaml::{At, Fields, Node, Report, Value};

/// What a case may say differently from its scenario.
pub const FIELDS: [&str; 11] = [
    "topology", "worker", "lock", "duration", "deadline", "workers", "timeline", "contend",
    "keyspace", "fence", "expect",
];

/// Each is read with all that they share.
const MOST_CASES: usize = 50;

pub struct Draft {
    pub name: Option<At<String>>,
    pub about: Option<At<String>>,
    pub cases: Vec<DraftCase>,
}

/// `settings` are laid over every case: what somebody wants differently this
/// once.
pub fn read(root: &Node, settings: &Node, report: &mut Report) -> Option<Draft> {
    let mut fields = Fields::of(root, "the scenario", report)?;
    let name = fields.required("name", report);
    let about = fields.required("about", report);
    fields.optional(kind::FIELD);
    let cases = fields.required("cases", report);
    for field in FIELDS {
        fields.optional(field);
    }
    fields.finish(report);
    let read_case = |name: &At<String>, node: &Node, report: &mut Report| {
        case::read(name, node, root, settings, report)
    };
    let cases = cases.filter(|node| has_few_cases(node, report));
    let cases = cases.map(|node| read_named(node, "the cases by name", read_case, report));
    let cases = cases.unwrap_or_default();
    if cases.is_empty() {
        // What is wrong beside that is said all the same.
        setup::read(root, report);
    }
    Some(Draft {
        name: name.and_then(|node| node.text("a name", report)),
        about: about.and_then(|node| node.text("a text", report)),
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
