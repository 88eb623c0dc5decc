//! The forms of fields' values: a reader and a schema each.

use super::fields::Form;
use super::*;
use serde_json::Value;
use std::fmt::Display;
use std::ops::RangeInclusive;

pub fn to(definition: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{definition}") })
}

/// A value that is read elsewhere, once more is known.
pub fn later(schema: impl Fn() -> Value) -> impl Form<Node> {
    (|node: &Node, _: &mut Report| Some(node.clone()), schema)
}

pub fn text(expected: &str) -> impl Form<At<String>> {
    (
        move |node: &Node, report: &mut Report| node.text(expected, report),
        || json!({ "type": "string" }),
    )
}

pub fn duration() -> impl Form<At<Duration>> {
    (values::duration, || to("duration"))
}

pub fn span() -> impl Form<At<Span>> {
    (values::span, || to("span"))
}

pub fn trigger() -> impl Form<At<Trigger>> {
    (values::trigger, || to("trigger"))
}

/// A whole number that may be large.
pub fn many() -> impl Form<At<u64>> {
    (values::count_of_many, || to("many"))
}

/// A whole number whose upper bound depends on the rest of the file.
pub fn whole_number(least: u32) -> impl Form<At<u32>> {
    (
        values::whole_number,
        move || json!({ "type": "integer", "minimum": least }),
    )
}

/// A whole number within bounds; `what` is its field.
pub fn number(what: &str, bounds: RangeInclusive<u32>) -> impl Form<At<u32>> {
    let (least, most) = (*bounds.start(), *bounds.end());
    (
        move |node: &Node, report: &mut Report| {
            let bounds = i64::from(least)..=i64::from(most);
            let number = values::number(node, what, bounds, report)?;
            Some(number.map(|number| number as u32))
        },
        move || json!({ "type": "integer", "minimum": least, "maximum": most }),
    )
}

pub fn yes_or_no() -> impl Form<At<bool>> {
    (
        |node: &Node, report: &mut Report| {
            values::choice(node, "answer (true or false)", &[true, false], report)
        },
        || json!({ "type": "boolean" }),
    )
}

/// One of a few words.
pub fn choice<T: Copy + Display>(what: &str, all: &[T]) -> impl Form<At<T>> {
    (
        move |node: &Node, report: &mut Report| values::choice(node, what, all, report),
        || json!({ "enum": words(all) }),
    )
}

pub fn words(all: &[impl ToString]) -> Vec<String> {
    all.iter().map(ToString::to_string).collect()
}
