use super::*;
use crate::scenario::values::choice;

/// The kind of a scenario, which decides on its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Kind {
    /// Workers and what affects them.
    Fault,
    /// A load instead of workers.
    Load,
}

const FIELD: &str = "kind";
const OF_FAULTS: [&str; 3] = ["worker", "workers", "timeline"];
const OF_LOADS: [&str; 2] = [CONTEND, KEYSPACE];
const CONTEND: &str = "contend";
const KEYSPACE: &str = "keyspace";

/// A worker has no rate, and a process each is too much for hundreds of contenders.
const OWN_CONTENDERS: &str = "the contenders of a load are tasks of this program, which cannot be replaced; for the figures of a lock of your own, give a scenario of workers a `duration`, `copies` and no timeline";

/// Returns the kind as written, and `fault` if nothing is written. A wrong word becomes the kind
/// that the other fields look like, so that these are not called wrong as well.
pub fn read(fields: &mut Fields<'_>, report: &mut Report) -> Kind {
    let written = fields.optional(FIELD);
    let kind = written.and_then(|node| choice(node, FIELD, Kind::VARIANTS, report));
    let has_load = OF_LOADS.map(|field| fields.optional(field).is_some());
    let has_workers = fields.optional("workers").is_some();
    let looks_like = if has_load.contains(&true) && !has_workers {
        Kind::Load
    } else {
        Kind::Fault
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

/// Returns whether a field has a meaning for one of the kinds only.
pub fn is_of_one_kind(field: &str) -> bool {
    OF_FAULTS.contains(&field) || OF_LOADS.contains(&field) || field == "duration"
}

/// Returns whether a field has no meaning for a scenario of this kind.
pub fn is_of_the_other(field: &str, is_load: bool) -> bool {
    match is_load {
        true => OF_FAULTS.contains(&field),
        false => OF_LOADS.contains(&field),
    }
}

/// Complains about fields that only the other kind has.
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
            let why = match *field {
                "worker" => OWN_CONTENDERS,
                _ => why,
            };
            report.add(place, format!("`{field}`: {why}"));
        }
    }
}

/// Reads exactly one of the loads.
pub fn read_load(node: &Node, fields: &mut Fields<'_>, report: &mut Report) -> Option<DraftLoad> {
    let contend = fields.read(CONTEND, report, load::read_contend);
    let keyspace = fields.read(KEYSPACE, report, |node, report| {
        DraftKeyspace::read(node, KEYSPACE, report)
    });
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
