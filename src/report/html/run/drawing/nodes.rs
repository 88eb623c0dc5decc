//! The lane of a lock node: the grants of the server itself, and how each of them ended.

use super::*;

const BAR: f64 = 13.0;
const BAR_TOP: f64 = 17.0;
const LETTER: f64 = 6.6;

/// Returns whether this is about a hold. A server may grant a try that the majority refused,
/// and release it again before any worker holds the lock.
pub fn is_of_a_hold(window: &Window<'_>, row: &LockEvent) -> bool {
    let until_ns = match row.kind {
        LockEventKind::Granted => end(window, row).map_or(u64::MAX, |end| end.at_ns),
        _ => row.at_ns,
    };
    // A grant that was over before the bystander could ask has no owner. If it has no token
    // either, it could belong to any worker.
    let is_its = |held: &Held| match &row.owner {
        Some(owner) => *owner == held.owner,
        None => row.token.is_some() && row.token == held.token,
    };
    let mut held = window.held.iter();
    held.any(|held| is_its(held) && held.from_ns <= until_ns)
}

/// Returns the event that ended a grant: the server holds one lock per key at a time.
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
        type Draw = fn(&Sheet<'_>, &Lane, &LockEvent) -> Markup;
        let (class, verb, draw): (_, _, Draw) = match event.kind {
            LockEventKind::Granted => ("a-grant", "grants", granted),
            LockEventKind::Expired => ("an-expiry", "sees the TTL run out for", expired),
            LockEventKind::Renewed => ("a-release", "renews", passed),
            LockEventKind::Released => ("a-release", "releases", passed),
            LockEventKind::Queued => ("a-release", "sees a wait for", passed),
            LockEventKind::Left => ("a-release", "sees the end of a wait for", passed),
        };
        let whose = sheet.worker_of(event.owner.as_deref());
        let whose = whose.map_or(String::new(), |worker| format!(" of {worker}"));
        let token = event
            .token
            .map_or(String::new(), |token| format!(", token {token}"));
        let (node, key, at) = (&event.node, &event.key, sheet.at(event.at_ns));
        let words = format!("{node} {verb} {key}{whose}{token} at {at}");
        let is_end = matches!(event.kind, LockEventKind::Expired | LockEventKind::Released);
        let kind = [StepKind::Other, StepKind::LetGo][usize::from(is_end)];
        let mark = Mark::new(class, event.at_ns, words, row(event)).about(kind, key);
        marks.add(mark, &draw(sheet, lane, event));
    }
}

fn granted(sheet: &Sheet<'_>, lane: &Lane, event: &LockEvent) -> Markup {
    let from = sheet.x(event.at_ns);
    let to = end(sheet.window, event).map_or(sheet.axis.end(), |row| sheet.x(row.at_ns));
    let top = lane.top + BAR_TOP;
    let token = event.token.map_or(String::new(), |token| token.to_string());
    let fits = token.chars().count() as f64 * LETTER + 8.0 <= to - from;
    html! {
        @if is_of_a_hold(sheet.window, event) {
            (rect("granted", from, top, to - from, BAR))
            @if fits { text x=(short(from + 4.0)) y=(short(top + 10.5)) { (token) } }
        } @else {
            (rect("tried", from, top + 3.0, to - from, BAR - 6.0))
        }
    }
}

/// Draws the end of a TTL: a triangle that points at the moment.
fn expired(sheet: &Sheet<'_>, lane: &Lane, event: &LockEvent) -> Markup {
    let (x, y) = (sheet.x(event.at_ns), lane.top + BAR_TOP);
    html! {
        (path_at("ran-out", x - 5.0, y - 9.0, "h10l-5 8z"))
        (path_at("ran-out", x, y - 1.0, &format!("v{}", BAR + 5.0)))
        @if is_of_a_hold(sheet.window, event) {
            (text("soft", x - 4.0, y + BAR + 14.0, "TTL over"))
        }
        (hit(x, y))
    }
}

fn passed(sheet: &Sheet<'_>, lane: &Lane, event: &LockEvent) -> Markup {
    let (x, y) = (sheet.x(event.at_ns), lane.top + BAR_TOP + BAR + 5.0);
    html! {
        @if is_of_a_hold(sheet.window, event) { (circle("small", x, y, 2.0)) (hit(x, y)) }
        @else { (circle("small", x, y, 1.0)) }
    }
}
