//! Single values as people write them: durations, names, choices, counts.

use super::{At, Node, Report};
use crate::model::{CountRange, DurationRange, Name, Span, Trigger, parse_count, parse_duration};
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Reads the text of a single value with `parse`, and reports its complaint.
pub fn parsed<T>(
    node: &Node,
    expected: &str,
    report: &mut Report,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Option<At<T>> {
    let At { place, value } = node.text(expected, report)?;
    match parse(&value) {
        Ok(value) => Some(At { place, value }),
        Err(message) => {
            report.add(place, message);
            None
        }
    }
}

pub fn duration(node: &Node, report: &mut Report) -> Option<At<Duration>> {
    parsed(node, "a duration", report, exact)
}

fn exact(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| {
        format!(
            "`{text}` is not a duration; write a whole number and ms, s or m, such as 500ms or 2s"
        )
    })
}

/// Reads `2s`, or bounds: `500ms..2s`.
pub fn span(node: &Node, report: &mut Report) -> Option<At<Span>> {
    parsed(node, "a duration", report, |text| {
        let Some((from, to)) = text.split_once("..") else {
            return exact(text).map(Span::exactly);
        };
        match parse_duration(from).zip(parse_duration(to)) {
            Some((from, to)) if from <= to => Ok(Span { from, to }),
            Some(_) => Err(format!("`{text}` ends before it begins")),
            None => Err(format!(
                "`{text}` are no bounds; write two durations, such as 500ms..2s"
            )),
        }
    })
}

/// Reads how often in a second: `200/s`, or just `200`.
pub fn per_second(node: &Node, report: &mut Report) -> Option<At<f64>> {
    parsed(node, "a rate", report, |text| {
        let number = text.strip_suffix("/s").unwrap_or(text);
        let is_plain = number.chars().all(|c| c.is_ascii_digit() || c == '.');
        let rate = number.parse::<f64>().ok();
        let rate = rate.filter(|rate| is_plain && rate.is_finite());
        rate.ok_or_else(|| format!("`{text}` is not a rate; write such as 200/s"))
    })
}

/// Reads a whole number that may be large: `20000`, `20k`, `10M`.
pub fn count_of_many(node: &Node, report: &mut Report) -> Option<At<u64>> {
    parsed(node, "a whole number", report, |text| {
        parse_count(text).ok_or_else(|| {
            format!("`{text}` is not a whole number; write such as 20000, 20k or 10M")
        })
    })
}

/// Reads a whole number within bounds; `what` is its field.
pub fn number(
    node: &Node,
    what: &str,
    bounds: RangeInclusive<i64>,
    report: &mut Report,
) -> Option<At<i64>> {
    parsed(node, "a whole number", report, |text| {
        let (least, most) = (bounds.start(), bounds.end());
        match text.parse::<i64>() {
            Ok(number) if bounds.contains(&number) => Ok(number),
            Ok(number) if number < 0 && *least >= 0 => Err(format!("`{what}` cannot be negative")),
            Ok(_) => Err(format!("`{what}` is {least} to {most}")),
            Err(_) => Err(format!("`{text}` is not a whole number")),
        }
    })
}

pub fn whole_number(node: &Node, report: &mut Report) -> Option<At<u32>> {
    parsed(node, "a whole number", report, |text| {
        let number = text.parse();
        number.map_err(|_| format!("`{text}` is not a whole number"))
    })
}

pub fn trigger(node: &Node, report: &mut Report) -> Option<At<Trigger>> {
    parsed(node, "an event", report, |text| {
        Trigger::parse(text).ok_or_else(|| {
            format!(
                "`{text}` is not an event; write who and what, such as a.acquired or a.acquired#2"
            )
        })
    })
}

fn unless_it_always_holds<T>(range: T, always: bool, text: &str) -> Result<T, String> {
    match always {
        false => Ok(range),
        true => Err(format!("`{text}` always holds, so it proves nothing")),
    }
}

pub fn range(node: &Node, report: &mut Report) -> Option<CountRange> {
    let range = parsed(node, "a count", report, |text| {
        let range = CountRange::parse(text);
        let range =
            range.ok_or_else(|| format!("`{text}` is not a count; write 2, 1.., ..3 or 1..3"))?;
        unless_it_always_holds(range, range == CountRange { min: 0, max: None }, text)
    });
    range.map(|at| at.value)
}

pub fn duration_range(node: &Node, report: &mut Report) -> Option<DurationRange> {
    let range = parsed(node, "a range of durations", report, |text| {
        let range = DurationRange::parse(text).ok_or_else(|| {
            format!("`{text}` is not a range of durations; write 8s.., ..5s or 1s..4s")
        })?;
        let always = range.min.is_zero() && range.max.is_none();
        unless_it_always_holds(range, always, text)
    });
    range.map(|at| at.value)
}

/// Reads one of a few words; a wrong one is reported with the nearest right one.
pub fn choice<T: Copy + Display>(
    node: &Node,
    what: &str,
    all: &[T],
    report: &mut Report,
) -> Option<At<T>> {
    let text = node.text(what, report)?;
    let chosen = all.iter().find(|one| one.to_string() == text.value);
    if chosen.is_none() {
        let names: Vec<String> = all.iter().map(T::to_string).collect();
        let names = names.iter().map(String::as_str);
        report.unknown(text.place, what, &text.value, names);
    }
    chosen.map(|one| text.map(|_| *one))
}

/// Returns whether a name can be the base of others: copies of a worker have a number behind it.
pub fn is_plain_name(text: &str) -> bool {
    text.len() <= 40
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && Name::new(text).is_ok()
}
