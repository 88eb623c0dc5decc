//! Faults as shaded spans: hatched from when one was asked for until it was seen to
//! bite, full while it bit, hatched again while it was being undone.

use super::super::fault_span::FaultSpan;
use super::Sheet;
use super::lanes::{Lane, Of, text};
use super::marks::{Mark, Marks, path, rect, row};
use crate::model::StepKind;
use crate::report::markup::{element, short};

pub fn draw(sheet: &Sheet<'_>, marks: &mut Marks) {
    for span in &sheet.window.faults {
        let lanes = [Of::Worker, Of::Node, Of::Resource, Of::Links];
        let own = lanes.into_iter().find_map(|of| sheet.lane(of, span.target));
        let shared = || sheet.lanes.iter().find(|lane| lane.of == Of::MoreLinks);
        if let Some(lane) = own.or_else(shared) {
            let shapes = match span.kind.stands() {
                true => standing(sheet, lane, span),
                false => passing(sheet, lane, span),
            };
            mark(sheet, span, &shapes, marks);
        }
    }
}

fn mark(sheet: &Sheet<'_>, span: &FaultSpan<'_>, shapes: &str, marks: &mut Marks) {
    let at = |ns: Option<u64>| ns.map_or("never".to_owned(), |ns| sheet.at(ns));
    let seen = match span.observed_ns {
        Some(_) => format!("observed at {}", at(span.observed_ns)),
        None => "not proven to have bitten".to_owned(),
    };
    let end = match (span.kind.stands(), span.ended_ns.or(span.ending_ns)) {
        (true, Some(end_ns)) => format!(", ended at {}", sheet.at(end_ns)),
        (true, None) => ", not seen to end".to_owned(),
        (false, _) => String::new(),
    };
    let words = format!(
        "{} of {}: requested at {}, {seen}{end}. {}",
        span.kind,
        span.called,
        sheet.at(span.requested_ns),
        span.proof,
    );
    let rows: Vec<String> = span.rows.iter().map(row).collect();
    let times: Vec<u64> = span.rows.iter().map(|row| row.at_ns).collect();
    let mark = Mark {
        class: "a-fault",
        at_ns: span.requested_ns,
        kind: StepKind::Fault,
        key: "",
        words,
        row: rows.join("\n"),
    };
    marks.add_known_at(mark, &times, shapes);
}

/// What lasts until something undoes it.
fn standing(sheet: &Sheet<'_>, lane: &Lane, span: &FaultSpan<'_>) -> String {
    let (top, height) = (lane.top + 1.0, lane.height - 2.0);
    let from = sheet.x(span.requested_ns);
    let to = span.last_ns().map_or(sheet.axis.end(), |ns| sheet.x(ns));
    let mut shapes = String::new();
    let mut part = |class: &str, from: f64, to: f64| {
        if to > from {
            shapes += &rect(class, from, top, to - from, height);
        }
    };
    match span.observed_ns.map(|ns| sheet.x(ns)) {
        Some(seen) => {
            let undoing = span.ending_ns.map_or(to, |ns| sheet.x(ns)).max(seen);
            part("asked", from, seen);
            part("fault", seen, undoing);
            part("asked", undoing, to);
        }
        None => part("asked", from, to),
    }
    let edge = |x: f64| {
        path(
            "edge",
            &format!("M{} {}v{}", short(x), short(top), short(height)),
        )
    };
    shapes += &edge(from);
    shapes += &span
        .observed_ns
        .map_or(String::new(), |ns| edge(sheet.x(ns)));
    let words = match span.observed_ns {
        Some(_) => span.kind.to_string(),
        None => format!("{}: unproven", span.kind),
    };
    shapes + &text("fault-words", from + 4.0, lane.top + 11.0, &words)
}

/// What only happens: an edge with a sign at its foot.
fn passing(sheet: &Sheet<'_>, lane: &Lane, span: &FaultSpan<'_>) -> String {
    let x = sheet.x(span.requested_ns);
    let (top, bottom) = (lane.top + 1.0, lane.top + lane.height - 1.0);
    let seen = span.observed_ns.map_or(x, |ns| sheet.x(ns));
    let way = format!("M{} {}V{}", short(x), short(top), short(bottom));
    let foot = format!("M{} {}l4 -6h-8z", short(x), short(bottom));
    let words = match span.observed_ns {
        Some(_) => span.kind.to_string(),
        None => format!("{}: unproven", span.kind),
    };
    [
        rect("asked", x, top, seen - x, bottom - top),
        path("edge", &way),
        path("fault-words", &foot),
        text("fault-words", x + 4.0, lane.top + 11.0, &words),
    ]
    .concat()
}

/// The hatching, once for a page: drawings refer to it by its name.
pub fn pattern() -> String {
    let stripe = path("stripe", "M0 0V6");
    element(
        "pattern",
        &[
            ("id", &"hatched"),
            ("width", &"5"),
            ("height", &"5"),
            ("patternUnits", &"userSpaceOnUse"),
            ("patternTransform", &"rotate(45)"),
        ],
        &stripe,
    )
}
