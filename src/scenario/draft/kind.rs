use super::load::{self, DraftLoad};
use crate::scenario::values::choice;
use crate::yaml::{Fields, Node, Report};
use std::fmt;

/// What a scenario is about, and so which fields it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Workers and what befalls them.
    Fault,
    /// A load instead.
    Load,
}

impl Kind {
    pub const ALL: [Kind; 2] = [Kind::Fault, Kind::Load];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Fault => "fault",
            Kind::Load => "load",
        })
    }
}

pub const FIELD: &str = "kind";
const OF_FAULTS: [&str; 3] = ["worker", "workers", "timeline"];
const OF_LOADS: [&str; 2] = [CONTEND, KEYSPACE];
const CONTEND: &str = "contend";
const KEYSPACE: &str = "keyspace";

/// As written, `fault` where nothing is. A wrong word is taken for what the rest
/// of the fields look like, so that these are not called wrong as well.
pub fn read(fields: &mut Fields<'_>, report: &mut Report) -> Kind {
    let written = fields.optional(FIELD);
    let kind = written.and_then(|node| choice(node, FIELD, &Kind::ALL, report));
    let has_load = OF_LOADS.map(|field| fields.optional(field).is_some());
    let has_workers = fields.optional("workers").is_some();
    let looks_like = match has_load.contains(&true) && !has_workers {
        true => Kind::Load,
        false => Kind::Fault,
    };
    let (kind, known) = match (written, kind) {
        (_, Some(kind)) => (kind.value, true),
        (Some(_), None) => (looks_like, false),
        (None, None) => (looks_like, true),
    };
    if known {
        refuse_others(fields, kind, written.is_some(), report);
    }
    kind
}

/// Fields that the other kind has.
fn refuse_others(fields: &mut Fields<'_>, kind: Kind, is_written: bool, report: &mut Report) {
    let (others, why): (&[&'static str], &str) = match kind {
        Kind::Load if is_written => (
            &OF_FAULTS,
            "a load has contenders of its own and no faults; leave it out, or leave `kind: load` out",
        ),
        _ => (&OF_LOADS, "that is a load; write `kind: load`"),
    };
    for field in others {
        if let Some(place) = fields.place_of(field) {
            report.add(place, format!("`{field}`: {why}"));
        }
    }
}

/// Exactly one of the loads.
pub fn read_load(node: &Node, fields: &mut Fields<'_>, report: &mut Report) -> Option<DraftLoad> {
    let contend = fields.read(CONTEND, report, load::read_contend);
    let keyspace = fields.read(KEYSPACE, report, load::read_keyspace);
    match (fields.place_of(CONTEND), fields.place_of(KEYSPACE)) {
        (Some(_), Some(place)) => {
            let message = "a load is `contend` or `keyspace`, and not both";
            report.add(place, message);
        }
        (None, None) => {
            let message = "a load is `contend` or `keyspace`; the scenario needs one of them";
            report.add(node.place, message);
        }
        _ => {}
    }
    contend
        .map(DraftLoad::Contend)
        .or(keyspace.map(DraftLoad::Keyspace))
}
