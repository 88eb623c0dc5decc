//! A worker's lane: its holds as bars with their tokens, waiting before them, and
//! whatever else it told as small marks below.

use super::Sheet;
use super::lanes::{Lane, Of, text};
use super::marks::{Mark, Marks, circle, hit, path, rect, row};
use crate::model::{Event, EventKind, Held, StepKind, Violation};
use crate::report::lock;
use crate::report::markup::short;
use std::collections::BTreeMap;

const BAR: f64 = 15.0;
const BAR_TOP: f64 = 15.0;
const LETTER: f64 = 6.6;

pub fn draw(sheet: &Sheet<'_>, marks: &mut Marks) {
    for held in &sheet.window.held {
        if let Some(lane) = sheet.lane(Of::Worker, &held.worker) {
            waiting(sheet, lane, held, marks);
            hold(sheet, lane, held, marks);
        }
    }
    for event in &sheet.window.events {
        let is_bar = matches!(
            event.kind,
            EventKind::Acquired { .. } | EventKind::Acquiring { .. }
        );
        if let Some(lane) = sheet.lane(Of::Worker, &event.worker)
            && !is_bar
        {
            small(sheet, lane, event, marks);
        }
    }
    breaks(sheet, marks);
}

fn breaks(sheet: &Sheet<'_>, marks: &mut Marks) {
    // Where the last name in each lane ends: one that has no room is left to its mark.
    let mut taken: BTreeMap<&str, f64> = BTreeMap::new();
    for violation in &sheet.window.breaks {
        let worker = violation.workers.first();
        let Some(lane) = worker.and_then(|worker| sheet.lane(Of::Worker, worker)) else {
            continue;
        };
        let x = sheet.x(violation.at_ns);
        let name = violation.kind.name();
        let end = taken.entry(&lane.name).or_insert(f64::MIN);
        let name = if x >= *end { name } else { "" };
        if !name.is_empty() {
            *end = x + 14.0 + name.chars().count() as f64 * LETTER;
        }
        broken(sheet, lane, violation, name, marks);
    }
}

/// A broken promise that no write shows: a sign at its moment, with its name.
fn broken(sheet: &Sheet<'_>, lane: &Lane, violation: &Violation, name: &str, marks: &mut Marks) {
    let (x, top) = (sheet.x(violation.at_ns), lane.top + 2.0);
    let (sign_class, words_class, excuse) = match violation.excuse {
        None => ("violating", "pair-words", String::new()),
        Some(_) => {
            let excuse = lock::excuse(violation);
            ("excused", "soft", format!(", excused by {excuse}"))
        }
    };
    let sign = format!("M{} {}l4 -8h-8z", short(x), short(top + 10.0));
    let line = format!(
        "M{} {}V{}",
        short(x),
        short(top + 10.0),
        short(top + BAR_TOP + BAR)
    );
    let label = match name.is_empty() {
        true => String::new(),
        false => text(words_class, x + 7.0, top + 8.0, name),
    };
    let shapes = path(sign_class, &sign) + &path(sign_class, &line) + &label + &hit(x, top + 6.0);
    let mark = Mark {
        class: "a-break",
        at_ns: violation.at_ns,
        kind: StepKind::Other,
        key: &violation.key,
        words: format!(
            "{} at {}: {}{excuse}",
            violation.kind,
            sheet.at(violation.at_ns),
            violation.detail,
        ),
        row: row(violation),
    };
    marks.add(mark, &shapes);
}

fn hold(sheet: &Sheet<'_>, lane: &Lane, held: &Held, marks: &mut Marks) {
    let (from, to) = (sheet.x(held.from_ns), sheet.x(held.to_ns));
    let top = lane.top + BAR_TOP;
    let mut shapes = rect("hold", from, top, to - from, BAR);
    if !held.ended {
        shapes += &rect("open", to, top, sheet.axis.end() - to, BAR);
    }
    shapes += &label(sheet, held, from, to, top);
    let acquired = sheet.window.events.iter().find(|event| {
        event.at_ns == held.from_ns && matches!(event.kind, EventKind::Acquired { .. })
    });
    let until = match held.ended {
        true => format!("until {}", sheet.at(held.to_ns)),
        false => "and the history stops in the middle of it".to_owned(),
    };
    let mark = Mark {
        class: "a-hold",
        at_ns: held.from_ns,
        kind: StepKind::Grant,
        key: &held.key,
        words: format!(
            "{} holds {} {} from {} {until}",
            held.worker,
            held.key,
            held.token
                .map_or("without a token".to_owned(), |token| format!(
                    "with token {token}"
                )),
            sheet.at(held.from_ns),
        ),
        row: acquired.map_or(String::new(), row),
    };
    marks.add(mark, &shapes);
}

/// Inside the bar where there is room, and right of it otherwise.
fn label(sheet: &Sheet<'_>, held: &Held, from: f64, to: f64, top: f64) -> String {
    let mut keys = sheet.window.held.iter().map(|held| &held.key);
    let bare = held.token.map_or("–".to_owned(), |token| token.to_string());
    let words = match keys.any(|key| *key != held.key) {
        true => format!("{}: {bare}", held.key),
        false => format!("token {bare}"),
    };
    let fits = |words: &str| words.chars().count() as f64 * LETTER + 8.0 <= to - from;
    let inside = |words: &str| text("hold-words", from + 4.0, top + 11.5, words);
    match (fits(&words), fits(&bare)) {
        (true, _) => inside(&words),
        (_, true) => inside(&bare),
        _ => text("soft", from, top - 2.0, &bare),
    }
}

/// From when a worker asked for the key, where that is in the window.
fn waiting(sheet: &Sheet<'_>, lane: &Lane, held: &Held, marks: &mut Marks) {
    let asked = sheet.window.events.iter().rfind(|event| {
        event.worker == held.worker
            && event.at_ns <= held.from_ns
            && matches!(&event.kind, EventKind::Acquiring { key, .. } if *key == held.key)
    });
    let Some(asked) = asked else { return };
    let (from, to) = (sheet.x(asked.at_ns), sheet.x(held.from_ns));
    let y = lane.top + BAR_TOP + BAR / 2.0;
    let way = format!("M{} {}H{}", short(from), short(y), short(to));
    let start = format!("M{} {}v8", short(from), short(y - 4.0));
    let mark = Mark {
        class: "a-wait",
        at_ns: asked.at_ns,
        kind: StepKind::Other,
        key: &held.key,
        words: format!(
            "{} asks for {} at {}",
            held.worker,
            held.key,
            sheet.at(asked.at_ns)
        ),
        row: row(asked),
    };
    let shapes =
        path("waits", &way) + &path("waits", &start) + &rect("hit", from, y - 6.0, to - from, 12.0);
    marks.add(mark, &shapes);
}

fn small(sheet: &Sheet<'_>, lane: &Lane, event: &Event, marks: &mut Marks) {
    let (x, y) = (sheet.x(event.at_ns), lane.top + BAR_TOP + BAR + 8.0);
    let cross = |size: f64| {
        let (x, y, d) = (x - size, y - size, 2.0 * size);
        let (x, y, d) = (short(x), short(y), short(d));
        path("rejected", &format!("M{x} {y}l{d} {d}m0 -{d}l-{d} {d}"))
    };
    let shape = match event.kind {
        EventKind::Lost { .. } | EventKind::Failed { .. } | EventKind::WriteRejected { .. } => {
            cross(3.0)
        }
        EventKind::Writing { .. } => path(
            "small",
            &format!("M{} {}l6 4l-6 4z", short(x - 3.0), short(y - 4.0)),
        ),
        _ => circle("small", x, y, 2.0),
    };
    let told = match &event.kind {
        EventKind::AtGate { gate, .. } => format!("at_gate {}", gate.name()),
        EventKind::Lost { reason, .. } => format!("lost: {reason}"),
        EventKind::Failed { error, .. } => format!("failed: {error}"),
        kind => kind.name().to_owned(),
    };
    let mark = Mark {
        class: "an-event",
        at_ns: event.at_ns,
        kind: StepKind::Other,
        key: "",
        words: format!("{} at {}: {told}", event.worker, sheet.at(event.at_ns)),
        row: row(event),
    };
    marks.add(mark, &(shape + &hit(x, y)));
}
