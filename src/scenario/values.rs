//! Single values as people write them: durations, names, choices, counts.

use super::Trigger;
use crate::model::{CountRange, parse_duration};
use crate::yaml::{At, Node, Report};
use std::fmt::Display;
use std::time::Duration;

pub fn duration(node: &Node, report: &mut Report) -> Option<At<Duration>> {
    let text = node.text("a duration", report)?;
    match parse_duration(&text.value) {
        Some(duration) => Some(text.map(|_| duration)),
        None => {
            let message = format!(
                "`{}` is not a duration; write a whole number and ms, s or m, such as 500ms or 2s",
                text.value
            );
            report.add(text.place, message);
            None
        }
    }
}

pub fn whole_number(node: &Node, report: &mut Report) -> Option<At<u32>> {
    let text = node.text("a whole number", report)?;
    match text.value.parse() {
        Ok(number) => Some(text.map(|_| number)),
        Err(_) => {
            report.add(
                text.place,
                format!("`{}` is not a whole number", text.value),
            );
            None
        }
    }
}

pub fn trigger(node: &Node, report: &mut Report) -> Option<At<Trigger>> {
    let text = node.text("an event", report)?;
    match Trigger::parse(&text.value) {
        Some(trigger) => Some(text.map(|_| trigger)),
        None => {
            let message = format!(
                "`{}` is not an event; write worker.event, such as a.acquired or a.acquired#2",
                text.value
            );
            report.add(text.place, message);
            None
        }
    }
}

pub fn range(node: &Node, report: &mut Report) -> Option<CountRange> {
    let text = node.text("a count", report)?;
    let range = CountRange::parse(&text.value);
    if range == Some(CountRange { min: 0, max: None }) {
        let message = format!("`{}` always holds, so it proves nothing", text.value);
        report.add(text.place, message);
    }
    if range.is_none() {
        let message = format!("`{}` is not a count; write 2, 1.., ..3 or 1..3", text.value);
        report.add(text.place, message);
    }
    range
}

/// One of a few words; a wrong one is answered with the nearest right one.
pub fn choice<T: Copy + Display>(
    node: &Node,
    what: &str,
    all: &[T],
    report: &mut Report,
) -> Option<At<T>> {
    let text = node.text(what, report)?;
    match all.iter().find(|one| one.to_string() == text.value) {
        Some(one) => Some(text.map(|_| *one)),
        None => {
            let names: Vec<String> = all.iter().map(T::to_string).collect();
            let names = names.iter().map(String::as_str);
            report.unknown(text.place, what, &text.value, names);
            None
        }
    }
}

/// Lower-case letters, digits and dashes: what a container, a host name and a
/// folder all take.
pub fn is_plain_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=40).contains(&text.len())
        && text.chars().all(allowed)
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && !text.ends_with('-')
}
