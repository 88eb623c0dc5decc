//! The resource's lane: every write that it decided on, and the pairs that break a rule.

use super::axis::Axis;
use super::*;

/// The room that the labels of a write need.
pub const ROOM: f64 = 26.0;
const TIER: f64 = 18.0;
/// The most labels above each other. More would be unreadable; their lines are still drawn.
const MOST_TIERS: usize = 4;
const LETTER: f64 = 6.9;
const LONGEST_LABEL: usize = 7;

/// A write, and the earlier one against which it broke a rule.
pub struct Pair<'a> {
    row: &'a LogRow,
    against: Option<&'a LogRow>,
    violations: Vec<&'a Violation>,
    label: String,
    label_left: f64,
    tier: usize,
}

pub fn pairs<'a>(window: &'a Window<'_>, axis: &Axis) -> Vec<Pair<'a>> {
    let find = |seq: u64| window.log.iter().find(|row| row.seq == seq);
    let mut by_rows: BTreeMap<(u64, Option<u64>), Vec<&Violation>> = BTreeMap::new();
    for &violation in &window.violations {
        let rows = (violation.row, violation.against);
        by_rows.entry(rows).or_default().push(violation);
    }
    let mut taken = [f64::MIN; MOST_TIERS];
    let pairs = by_rows
        .into_iter()
        .filter_map(|((row, against), violations)| {
            let row = find(row)?;
            let against = against.and_then(find);
            let label = joined(violations.iter().map(|one| one.kind), ", ");
            let x = axis.x(row.at_ns);
            let from = against.map_or(x, |against| axis.x(against.at_ns));
            let width = label.chars().count() as f64 * LETTER;
            let middle = (from + x) / 2.0;
            let label_left = (middle - width / 2.0)
                .min(axis.end() + 20.0 - width)
                .max(4.0);
            let left = label_left.min(from).min(x);
            let free = taken.iter().position(|end| *end <= left);
            let tier = free.unwrap_or(MOST_TIERS - 1);
            let label = if free.is_some() { label } else { String::new() };
            taken[tier] = taken[tier]
                .max(label_left + width + 8.0)
                .max(x.max(from) + 8.0);
            Some(Pair {
                row,
                against,
                violations,
                label,
                label_left,
                tier,
            })
        });
    pairs.collect()
}

/// Returns the room that the lines and labels of pairs need above the writes.
pub fn room_above(pairs: &[Pair<'_>]) -> f64 {
    let tiers = pairs.iter().map(|pair| pair.tier + 1).max();
    tiers.map_or(0.0, |tiers| tiers as f64 * TIER + 4.0)
}

pub fn draw(sheet: &Sheet<'_>, pairs: &[Pair<'_>], marks: &mut Marks) {
    let Some(lane) = sheet.lane(Of::Resource, sheet.window.resource) else {
        return;
    };
    let y = lane.top + lane.height - 42.0;
    for pair in pairs {
        join(sheet, pair, y, marks);
    }
    for write in &sheet.window.log {
        let mut of = pairs.iter();
        let violates = of.any(|pair| pair.row.seq == write.seq);
        decided(sheet, lane, write, violates, y, marks);
    }
}

fn decided(
    sheet: &Sheet<'_>,
    lane: &Lane,
    write: &LogRow,
    violates: bool,
    y: f64,
    marks: &mut Marks,
) {
    let x = sheet.x(write.at_ns);
    let cross = path_at("rejected", x - 4.0, y - 4.0, "l8 8m0 -8l-8 8");
    let (verb, shape) = match write.outcome {
        RowOutcome::Accepted if violates => ("accepts", circle("violating", x, y, 6.0)),
        RowOutcome::Accepted => ("accepts", circle("accepted", x, y, 5.0)),
        RowOutcome::Rejected => {
            let crossed = html! { (circle("rejected", x, y, 7.0)) (cross) };
            ("refuses", crossed)
        }
        RowOutcome::Duplicate => ("has already", circle("rejected", x, y, 5.0)),
    };
    let worker = sheet.worker_of(write.owner.as_deref());
    let token = write.token.map(|token| token.to_string());
    let shapes = html! {
        (shape)
        (text("soft middle", x, y + 19.0, &cut(token.as_deref().unwrap_or("–"))))
        (text("soft middle", x, y + 31.0, &cut(worker.unwrap_or(""))))
        (hit(x, y))
    };
    let with = with_token(token);
    let seen = write
        .seen
        .map_or(String::new(), |seen| format!(", having seen {seen}"));
    let class = match write.outcome {
        RowOutcome::Accepted => "a-write accepted-write",
        RowOutcome::Rejected => "a-write rejected-write",
        RowOutcome::Duplicate => "a-write duplicate-write",
    };
    let writer = worker
        .or(write.owner.as_deref())
        .unwrap_or("an unknown writer");
    let (
        LogRow {
            key, at_ns, seq, ..
        },
        at,
    ) = (write, sheet.at(write.at_ns));
    let resource = &lane.name;
    let words =
        format!("{resource} {verb} {writer}'s write on {key} {with}{seen} at {at}, position {seq}");
    let mark = Mark::new(class, *at_ns, words, row(write));
    marks.add(mark.about(StepKind::Write, key), &shapes);
}

/// Draws a line from the earlier write to the one that broke the rule, with the rule's name.
fn join(sheet: &Sheet<'_>, pair: &Pair<'_>, y: f64, marks: &mut Marks) {
    let line = y - 12.0 - pair.tier as f64 * TIER;
    let to = sheet.x(pair.row.at_ns);
    let from = pair.against.map_or(to, |against| sheet.x(against.at_ns));
    let (from, to, line, foot) = (short(from), short(to), short(line), short(y - 7.0));
    let way = format!("M{from} {foot}V{line}H{to}V{foot}");
    let arrow = format!("M{to} {foot}l-4 -6h8z");
    let text_y = y - 16.0 - pair.tier as f64 * TIER;
    let details = joined(pair.violations.iter().map(|one| &one.detail), "; ");
    let words = format!("{}: {details}", pair.label);
    let rows = joined(pair.violations.iter().map(row), "\n");
    let LogRow { key, at_ns, .. } = pair.row;
    let mark = Mark::new("a-pair", *at_ns, words, rows).about(StepKind::Other, key);
    let shapes = html! {
        (path("pair", &way))
        (path("violating", &arrow))
        @if !pair.label.is_empty() { (text("pair-words", pair.label_left, text_y, &pair.label)) }
    };
    marks.add(mark, &shapes);
}

/// Keeps the end of a long number, because the end distinguishes it from others.
fn cut(words: &str) -> String {
    let length = words.chars().count();
    if length <= LONGEST_LABEL {
        return words.to_owned();
    }
    let end = words.chars().skip(length + 1 - LONGEST_LABEL);
    std::iter::once('…').chain(end).collect()
}
