//! A lock node's lane: what the server itself held, and how each of these ended.

use super::super::window::Window;
use super::Sheet;
use super::lanes::{Lane, Of, text};
use super::marks::{Mark, Marks, circle, hit, path, rect, row};
use crate::model::{Held, LockEvent, LockEventKind, StepKind};
use crate::report::markup::short;

const BAR: f64 = 13.0;
const BAR_TOP: f64 = 17.0;
const LETTER: f64 = 6.6;

/// Whether this is about a hold. A server may grant a try that the majority refused,
/// and release it again before anybody holds anything.
pub fn is_of_a_hold(window: &Window<'_>, row: &LockEvent) -> bool {
    let until_ns = match row.kind {
        LockEventKind::Granted => end(window, row).map_or(u64::MAX, |end| end.at_ns),
        _ => row.at_ns,
    };
    // A grant that was over before the bystander could ask has no owner, and what has no
    // token either can be anybody's.
    let is_its = |held: &Held| match &row.owner {
        Some(owner) => *owner == held.owner,
        None => row.token.is_some() && row.token == held.token,
    };
    let mut held = window.held.iter();
    held.any(|held| is_its(held) && held.from_ns <= until_ns)
}

/// What ended a grant: the server holds one lock for a key at a time.
fn end<'a>(window: &'a Window<'_>, grant: &LockEvent) -> Option<&'a LockEvent> {
    let mut rows = window.locks.iter().copied();
    rows.by_ref().find(|row| std::ptr::eq(*row, grant))?;
    rows.find(|row| {
        let ends = !matches!(
            row.kind,
            LockEventKind::Renewed | LockEventKind::Queued | LockEventKind::Left
        );
        row.node == grant.node && row.key == grant.key && ends
    })
}

pub fn draw(sheet: &Sheet<'_>, marks: &mut Marks) {
    for event in &sheet.window.locks {
        let Some(lane) = sheet.lane(Of::Node, &event.node) else {
            continue;
        };
        match event.kind {
            LockEventKind::Granted => granted(sheet, lane, event, marks),
            LockEventKind::Expired => expired(sheet, lane, event, marks),
            LockEventKind::Renewed
            | LockEventKind::Released
            | LockEventKind::Queued
            | LockEventKind::Left => passed(sheet, lane, event, marks),
        }
    }
}

fn granted(sheet: &Sheet<'_>, lane: &Lane, event: &LockEvent, marks: &mut Marks) {
    let end = end(sheet.window, event);
    let (from, to) = (
        sheet.x(event.at_ns),
        end.map_or(sheet.axis.end(), |row| sheet.x(row.at_ns)),
    );
    let top = lane.top + BAR_TOP;
    let shapes = match is_of_a_hold(sheet.window, event) {
        true => {
            let token = event.token.map_or(String::new(), |token| token.to_string());
            let fits = token.chars().count() as f64 * LETTER + 8.0 <= to - from;
            let token = if fits { token } else { String::new() };
            rect("granted", from, top, to - from, BAR) + &text("", from + 4.0, top + 10.5, &token)
        }
        false => rect("tried", from, top + 3.0, to - from, BAR - 6.0),
    };
    add(sheet, event, "a-grant", "grants", &shapes, marks);
}

/// The end of a TTL: a triangle that points at the moment.
fn expired(sheet: &Sheet<'_>, lane: &Lane, event: &LockEvent, marks: &mut Marks) {
    let (x, y) = (sheet.x(event.at_ns), lane.top + BAR_TOP);
    let sign = format!("M{} {}h10l-5 8z", short(x - 5.0), short(y - 9.0));
    let line = format!("M{} {}v{}", short(x), short(y - 1.0), short(BAR + 5.0));
    let mut shapes = path("ran-out", &sign) + &path("ran-out", &line);
    if is_of_a_hold(sheet.window, event) {
        shapes += &text("soft", x - 4.0, y + BAR + 14.0, "TTL over");
    }
    add(
        sheet,
        event,
        "an-expiry",
        "sees the TTL run out for",
        &(shapes + &hit(x, y)),
        marks,
    );
}

fn passed(sheet: &Sheet<'_>, lane: &Lane, event: &LockEvent, marks: &mut Marks) {
    let (x, y) = (sheet.x(event.at_ns), lane.top + BAR_TOP + BAR + 5.0);
    let verb = match event.kind {
        LockEventKind::Renewed => "renews",
        LockEventKind::Queued => "sees a wait for",
        LockEventKind::Left => "sees the end of a wait for",
        _ => "releases",
    };
    let shapes = match is_of_a_hold(sheet.window, event) {
        true => circle("small", x, y, 2.0) + &hit(x, y),
        false => circle("small", x, y, 1.0),
    };
    add(sheet, event, "a-release", verb, &shapes, marks);
}

fn add(
    sheet: &Sheet<'_>,
    event: &LockEvent,
    class: &str,
    verb: &str,
    shapes: &str,
    marks: &mut Marks,
) {
    let is_end = matches!(event.kind, LockEventKind::Expired | LockEventKind::Released);
    let owner = event.owner.as_deref();
    let whose = match sheet.worker_of(owner) {
        Some(worker) => format!(" of {worker}"),
        None => String::new(),
    };
    let token = event
        .token
        .map_or(String::new(), |token| format!(", token {token}"));
    let mark = Mark {
        class,
        at_ns: event.at_ns,
        kind: if is_end {
            StepKind::LetGo
        } else {
            StepKind::Other
        },
        key: &event.key,
        words: format!(
            "{} {verb} {}{whose}{token} at {}",
            event.node,
            event.key,
            sheet.at(event.at_ns),
        ),
        row: row(event),
    };
    marks.add(mark, shapes);
}
