//! Faults as shaded spans: hatched from the request until the fault was seen to bite, solid
//! while it was active, hatched again while it was being undone.

use super::*;

pub fn draw(sheet: &Sheet<'_>, marks: &mut Marks) {
    for span in &sheet.window.faults {
        let lanes = [Of::Worker, Of::Node, Of::Resource, Of::Links];
        let own = lanes.into_iter().find_map(|of| sheet.lane(of, span.target));
        let shared = || sheet.lanes.iter().find(|lane| lane.of == Of::MoreLinks);
        if let Some(lane) = own.or_else(shared) {
            let shapes = match span.kind.lasts() {
                true => standing(sheet, lane, span),
                false => passing(sheet, lane, span),
            };
            mark(sheet, span, &shapes, marks);
        }
    }
}

fn mark(sheet: &Sheet<'_>, span: &FaultSpan<'_>, shapes: &Markup, marks: &mut Marks) {
    let at = |ns: Option<u64>| ns.map_or("never".to_owned(), |ns| sheet.at(ns));
    let seen = match span.observed_ns {
        Some(_) => format!("observed at {}", at(span.observed_ns)),
        None => "not proven to have bitten".to_owned(),
    };
    let end = match (span.kind.lasts(), span.ended_ns.or(span.ending_ns)) {
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
    let times: Vec<u64> = span.rows.iter().map(|row| row.at_ns).collect();
    let mark = Mark::new(
        "a-fault",
        span.requested_ns,
        words,
        joined(span.rows.iter().map(row), "\n"),
    );
    marks.add_known_at(mark.about(StepKind::Fault, ""), &times, shapes);
}

/// Draws a fault that lasts until something undoes it.
fn standing(sheet: &Sheet<'_>, lane: &Lane, span: &FaultSpan<'_>) -> Markup {
    let (top, height) = (lane.top + 1.0, lane.height - 2.0);
    let from = sheet.x(span.requested_ns);
    let to = span.last_ns().map_or(sheet.axis.end(), |ns| sheet.x(ns));
    let observed = span.observed_ns.map(|ns| sheet.x(ns));
    let seen = observed.unwrap_or(to);
    let undoing = span.ending_ns.map_or(to, |ns| sheet.x(ns)).max(seen);
    let parts = [
        ("asked", from, seen),
        ("fault", seen, undoing),
        ("asked", undoing, to),
    ];
    let parts = &parts[..if observed.is_some() { 3 } else { 1 }];
    let edge = |x: f64| path_at("edge", x, top, &format!("v{}", short(height)));
    let words = match span.observed_ns {
        Some(_) => span.kind.to_string(),
        None => format!("{}: unproven", span.kind),
    };
    html! {
        @for (class, from, to) in parts {
            @if to > from { (rect(class, *from, top, to - from, height)) }
        }
        (edge(from))
        @if let Some(seen) = observed { (edge(seen)) }
        (text("fault-words", from + 4.0, lane.top + 11.0, &words))
    }
}

/// Draws a fault that only happens at a moment: an edge with a sign at its foot.
fn passing(sheet: &Sheet<'_>, lane: &Lane, span: &FaultSpan<'_>) -> Markup {
    let x = sheet.x(span.requested_ns);
    let (top, bottom) = (lane.top + 1.0, lane.top + lane.height - 1.0);
    let seen = span.observed_ns.map_or(x, |ns| sheet.x(ns));
    let words = match span.observed_ns {
        Some(_) => span.kind.to_string(),
        None => format!("{}: unproven", span.kind),
    };
    html! {
        (rect("asked", x, top, seen - x, bottom - top))
        (path_at("edge", x, top, &format!("V{}", short(bottom))))
        (path_at("fault-words", x, bottom, "l4 -6h-8z"))
        (text("fault-words", x + 4.0, lane.top + 11.0, &words))
    }
}

/// Returns the hatching. A page has it once, and drawings refer to it by its name.
pub fn pattern() -> Markup {
    html! {
        pattern #hatched width="5" height="5" patternUnits="userSpaceOnUse"
            patternTransform="rotate(45)" { (path("stripe", "M0 0V6")) }
    }
}
