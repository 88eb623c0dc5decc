use super::*;
use crate::model::{Count, CountRange, Expectations, Measure, Trigger, ViolationKind};
use crate::scenario::fields::{Field, object};
use crate::scenario::values::{duration_range, range, trigger};
use std::collections::BTreeMap;
use strum::EnumMessage;

/// The expectations of a case. Events still have their places, because only the rest of the file
/// says whether they can come.
pub struct DraftExpectations {
    pub order: Vec<At<Trigger>>,
    rest: Expectations,
}

impl DraftExpectations {
    pub fn nothing() -> DraftExpectations {
        DraftExpectations {
            order: Vec::new(),
            rest: Expectations::default(),
        }
    }

    pub fn without_places(&self) -> Expectations {
        let order = self.order.iter();
        Expectations {
            order: order.map(|at| at.value.clone()).collect(),
            ..self.rest.clone()
        }
    }
}

pub fn read(node: &Node, report: &mut Report) -> Option<DraftExpectations> {
    let mut fields = Fields::of(node, "expect", report)?;
    let mut rest = Expectations::default();
    if let Some(node) = fields.optional(Expectations::VIOLATIONS) {
        (rest.violations, rest.violations_by_kind) = read_kinds(node, report);
    }
    if let Some(node) = fields.optional(Expectations::EXCUSED) {
        (rest.excused, rest.excused_by_kind) = read_kinds(node, report);
    }
    for &count in Count::ALL {
        let expected = fields.read(count.name(), report, range);
        rest.counts.extend(expected.map(|range| (count, range)));
    }
    for &measure in Measure::ALL {
        let expected = fields.read(measure.name(), report, duration_range);
        rest.measures.extend(expected.map(|range| (measure, range)));
    }
    let order = fields.read(Expectations::ORDER, report, read_order);
    fields.finish(report);
    if matches!(&node.value, Value::Map(fields) if fields.is_empty()) {
        report.add(node.place, "a case that expects nothing proves nothing");
    }
    Some(DraftExpectations {
        order: order.unwrap_or_default(),
        rest,
    })
}

/// Returns everything that can be expected.
pub fn table() -> Vec<Field> {
    let kinds = ViolationKind::ALL.map(|kind| Field::new(kind.name(), kind.means(), to("range")));
    let mut kinds = object(kinds.into());
    kinds["minProperties"] = 1.into();
    let kinds = json!({ "anyOf": [to("range"), kinds] });
    let about = |words: Option<&'static str>| words.unwrap_or_default();
    let counts = Count::ALL.iter();
    let counts = counts.map(|it| Field::new(it.name(), about(it.get_documentation()), to("range")));
    let measures = Measure::ALL.iter();
    let measures =
        measures.map(|it| Field::new(it.name(), about(it.get_documentation()), to("length")));
    let order = json!({ "type": "array", "minItems": 2, "items": to("trigger") });
    let mut all = vec![
        Field::new(
            Expectations::VIOLATIONS,
            "all kinds together, or `{ KIND: COUNT }`, where kinds that are not named must be absent",
            kinds.clone(),
        ),
        Field::new(
            Expectations::EXCUSED,
            "breaks of the lock that a proven fault explains, all kinds together or \
             `{ KIND: COUNT }` in the same way; nobody has to expect them",
            kinds,
        ),
        Field::new(Expectations::ORDER, "events one after the other", order),
    ];
    all.extend(counts.chain(measures));
    all
}

type ByKind = BTreeMap<ViolationKind, CountRange>;

/// Reads `violations: 1..` for all kinds together, or a mapping from kind to count.
fn read_kinds(node: &Node, report: &mut Report) -> (Option<CountRange>, ByKind) {
    let Value::Map(kinds) = &node.value else {
        return (range(node, report), ByKind::new());
    };
    let mut by_kind = ByKind::new();
    if kinds.is_empty() {
        report.add(node.place, "name at least one kind, or write a count");
    }
    for (name, count) in kinds {
        match name.value.parse() {
            Ok(kind) => {
                let count = range(count, report);
                by_kind.extend(count.map(|count| (kind, count)));
            }
            Err(_) => {
                let known = ViolationKind::ALL.map(ViolationKind::name);
                report.unknown(name.place, "violation", &name.value, known);
            }
        }
    }
    (None, by_kind)
}

fn read_order(node: &Node, report: &mut Report) -> Option<Vec<At<Trigger>>> {
    let events = node.list("events", report)?;
    if events.len() < 2 {
        report.add(node.place, "an order is two events or more");
    }
    Some(each_once(events, report, trigger))
}
