//! A worker's lane: its holds as bars with their tokens, its waits before them, and its other
//! events as small marks below.

use super::*;

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
    // The end of the last name in each lane. A name without room is shown only by its mark.
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

/// Draws a broken promise that is not about a write: a sign at its moment, with its name.
fn broken(sheet: &Sheet<'_>, lane: &Lane, violation: &Violation, name: &str, marks: &mut Marks) {
    let (x, top) = (sheet.x(violation.at_ns), lane.top + 2.0);
    let (sign_class, words_class, excuse) = match violation.excuse {
        None => ("violating", "pair-words", String::new()),
        Some(_) => {
            let excuse = lock::excuse(violation);
            ("excused", "soft", format!(", excused by {excuse}"))
        }
    };
    let foot = short(top + BAR_TOP + BAR);
    let shapes = html! {
        (path_at(sign_class, x, top + 10.0, "l4 -8h-8z"))
        (path_at(sign_class, x, top + 10.0, &format!("V{foot}")))
        @if !name.is_empty() { (text(words_class, x + 7.0, top + 8.0, name)) }
        (hit(x, top + 6.0))
    };
    let (kind, at_ns, detail) = (violation.kind, violation.at_ns, &violation.detail);
    let words = format!("{kind} at {}: {detail}{excuse}", sheet.at(at_ns));
    let mark = Mark::new("a-break", at_ns, words, row(violation));
    marks.add(mark.about(StepKind::Other, &violation.key), &shapes);
}

fn hold(sheet: &Sheet<'_>, lane: &Lane, held: &Held, marks: &mut Marks) {
    let (from, to) = (sheet.x(held.from_ns), sheet.x(held.to_ns));
    let top = lane.top + BAR_TOP;
    let shapes = html! {
        (rect("hold", from, top, to - from, BAR))
        @if !held.ended { (rect("open", to, top, sheet.axis.end() - to, BAR)) }
        (label(sheet, held, from, to, top))
    };
    let acquired = sheet.window.events.iter().find(|event| {
        event.at_ns == held.from_ns && matches!(event.kind, EventKind::Acquired { .. })
    });
    let until = match held.ended {
        true => format!("until {}", sheet.at(held.to_ns)),
        false => "and the history stops in the middle of it".to_owned(),
    };
    let (worker, key, with) = (&held.worker, &held.key, with_token(held.token));
    let (at_ns, at) = (held.from_ns, sheet.at(held.from_ns));
    let words = format!("{worker} holds {key} {with} from {at} {until}");
    let mark = Mark::new("a-hold", at_ns, words, acquired.map_or(String::new(), row));
    marks.add(mark.about(StepKind::Grant, key), &shapes);
}

/// Draws the token inside the bar if there is room, and above it otherwise.
fn label(sheet: &Sheet<'_>, held: &Held, from: f64, to: f64, top: f64) -> Markup {
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

/// Draws the wait since the worker asked for the key, if that is in the window.
fn waiting(sheet: &Sheet<'_>, lane: &Lane, held: &Held, marks: &mut Marks) {
    let asked = sheet.window.events.iter().rfind(|event| {
        event.worker == held.worker
            && event.at_ns <= held.from_ns
            && matches!(&event.kind, EventKind::Acquiring { key, .. } if *key == held.key)
    });
    let Some(asked) = asked else { return };
    let (from, to) = (sheet.x(asked.at_ns), sheet.x(held.from_ns));
    let y = lane.top + BAR_TOP + BAR / 2.0;
    let shapes = html! {
        (path_at("waits", from, y, &format!("H{}", short(to))))
        (path_at("waits", from, y - 4.0, "v8"))
        (rect("hit", from, y - 6.0, to - from, 12.0))
    };
    let Held { worker, key, .. } = held;
    let words = format!("{worker} asks for {key} at {}", sheet.at(asked.at_ns));
    let mark = Mark::new("a-wait", asked.at_ns, words, row(asked));
    marks.add(mark.about(StepKind::Other, key), &shapes);
}

fn small(sheet: &Sheet<'_>, lane: &Lane, event: &Event, marks: &mut Marks) {
    let (x, y) = (sheet.x(event.at_ns), lane.top + BAR_TOP + BAR + 8.0);
    let shape = match event.kind {
        EventKind::Lost { .. } | EventKind::Failed { .. } | EventKind::WriteRejected { .. } => {
            path_at("rejected", x - 3.0, y - 3.0, "l6 6m0 -6l-6 6")
        }
        EventKind::Writing { .. } => path_at("small", x - 3.0, y - 4.0, "l6 4l-6 4z"),
        _ => circle("small", x, y, 2.0),
    };
    let told = match &event.kind {
        EventKind::AtGate { gate, .. } => format!("at_gate {}", gate.name()),
        EventKind::Lost { reason, .. } => format!("lost: {reason}"),
        EventKind::Failed { error, .. } => format!("failed: {error}"),
        kind => kind.name().to_owned(),
    };
    let words = format!("{} at {}: {told}", event.worker, sheet.at(event.at_ns));
    let mark = Mark::new("an-event", event.at_ns, words, row(event));
    marks.add(mark, &html! { (shape) (hit(x, y)) });
}
