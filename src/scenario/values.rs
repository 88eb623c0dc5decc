//! Single values as people write them: durations, names, choices, counts.

use super::{Span, Trigger};
use crate::model::{CountRange, DurationRange, Name, parse_count, parse_duration};
use crate::yaml::{At, Node, Report};
use std::fmt::Display;
use std::ops::RangeInclusive;
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

/// `2s`, or bounds: `500ms..2s`.
pub fn span(node: &Node, report: &mut Report) -> Option<At<Span>> {
    let text = node.text("a duration", report)?;
    let bounds = match text.value.split_once("..") {
        None => return Some(duration(node, report)?.map(Span::exactly)),
        Some((from, to)) => parse_duration(from).zip(parse_duration(to)),
    };
    match bounds {
        Some((from, to)) if from <= to => Some(text.map(|_| Span { from, to })),
        Some(_) => {
            let message = format!("`{}` ends before it begins", text.value);
            report.add(text.place, message);
            None
        }
        None => {
            let message = format!(
                "`{}` are no bounds; write two durations, such as 500ms..2s",
                text.value
            );
            report.add(text.place, message);
            None
        }
    }
}

/// Milliseconds, forwards or back: `15s`, `+15s`, `-15s`.
pub fn signed_duration(node: &Node, report: &mut Report) -> Option<At<i64>> {
    let text = node.text("a duration", report)?;
    let (sign, length) = match text.value.strip_prefix('-') {
        Some(length) => (-1, length),
        None => (1, text.value.strip_prefix('+').unwrap_or(&text.value)),
    };
    let ms = parse_duration(length).and_then(|d| i64::try_from(d.as_millis()).ok());
    if ms.is_none() {
        let message = format!(
            "`{}` is not a duration with a sign; write such as 15s or -15s",
            text.value
        );
        report.add(text.place, message);
    }
    ms.map(|ms| text.map(|_| sign * ms))
}

/// Faster than this a probe could not see that it is slow.
pub const FASTEST_RATE: u64 = 2000;

/// `20KB/s`.
pub fn rate(node: &Node, report: &mut Report) -> Option<At<u64>> {
    let text = node.text("a rate", report)?;
    let rate: Option<u64> = text
        .value
        .strip_suffix("KB/s")
        .filter(|number| number.chars().all(|c| c.is_ascii_digit()))
        .and_then(|number| number.parse().ok());
    match rate {
        None => {
            let message = format!("`{}` is not a rate; write such as 20KB/s", text.value);
            report.add(text.place, message);
            None
        }
        Some(0) => {
            let message = "at 0KB/s nothing arrives at all: use `stall`";
            report.add(text.place, message);
            None
        }
        Some(rate) if rate > FASTEST_RATE => {
            let message = format!(
                "a rate is 1KB/s to {FASTEST_RATE}KB/s: a faster one could not be seen to bite"
            );
            report.add(text.place, message);
            None
        }
        Some(rate) => Some(text.map(|_| rate)),
    }
}

/// How often in a second: `200/s`, or just `200`.
pub fn per_second(node: &Node, report: &mut Report) -> Option<At<f64>> {
    let text = node.text("a rate", report)?;
    let number = text.value.strip_suffix("/s").unwrap_or(&text.value);
    let is_plain = number.chars().all(|c| c.is_ascii_digit() || c == '.');
    let rate = number.parse::<f64>().ok();
    let rate = rate.filter(|rate| is_plain && rate.is_finite());
    if rate.is_none() {
        let message = format!("`{}` is not a rate; write such as 200/s", text.value);
        report.add(text.place, message);
    }
    rate.map(|rate| text.map(|_| rate))
}

/// A whole number that may be great: `20000`, `20k`, `10M`.
pub fn count_of_many(node: &Node, report: &mut Report) -> Option<At<u64>> {
    let text = node.text("a whole number", report)?;
    let count = parse_count(&text.value);
    if count.is_none() {
        let message = format!(
            "`{}` is not a whole number; write such as 20000, 20k or 10M",
            text.value
        );
        report.add(text.place, message);
    }
    count.map(|count| text.map(|_| count))
}

/// A share above 0 and at most 1.
pub fn share(node: &Node, report: &mut Report) -> Option<At<f64>> {
    let text = node.text("a share", report)?;
    let share = text.value.parse().ok();
    let share = share.filter(|share| *share > 0.0 && *share <= 1.0);
    if share.is_none() {
        let message = format!("`{}` is not a share above 0 and at most 1", text.value);
        report.add(text.place, message);
    }
    share.map(|share| text.map(|_| share))
}

/// A whole number within bounds; `what` is its field.
pub fn number(
    node: &Node,
    what: &str,
    bounds: RangeInclusive<i64>,
    report: &mut Report,
) -> Option<At<i64>> {
    let text = node.text("a whole number", report)?;
    let (least, most) = (bounds.start(), bounds.end());
    let message = match text.value.parse::<i64>() {
        Ok(number) if bounds.contains(&number) => return Some(text.map(|_| number)),
        Ok(number) if number < 0 && *least >= 0 => format!("`{what}` cannot be negative"),
        Ok(_) => format!("`{what}` is {least} to {most}"),
        Err(_) => format!("`{}` is not a whole number", text.value),
    };
    report.add(text.place, message);
    None
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
                "`{}` is not an event; write who and what, such as a.acquired or a.acquired#2",
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

pub fn duration_range(node: &Node, report: &mut Report) -> Option<DurationRange> {
    let text = node.text("a range of durations", report)?;
    let range = DurationRange::parse(&text.value);
    let always = |range: &DurationRange| range.min.is_zero() && range.max.is_none();
    if range.as_ref().is_some_and(always) {
        let message = format!("`{}` always holds, so it proves nothing", text.value);
        report.add(text.place, message);
    }
    if range.is_none() {
        let message = format!(
            "`{}` is not a range of durations; write 8s.., ..5s or 1s..4s",
            text.value
        );
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

/// A name that others are made of: copies of a worker have a number behind it.
pub fn is_plain_name(text: &str) -> bool {
    text.len() <= 40
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && Name::new(text).is_ok()
}
