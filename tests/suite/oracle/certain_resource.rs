//! When a record makes a broken promise of the resource certain: said aloud, and slowly.

use super::resource::count_in;
use fencepost::model::ViolationKind::{self, *};
use fencepost::model::{BodyHash, CaseRecord, EventKind, Fence, LogRow, RowOutcome};

pub fn broken(record: &CaseRecord, log: &[LogRow]) -> Vec<ViolationKind> {
    let fence = record.plan.fence == Some(Fence::On);
    let mut broken = Vec::new();
    let mut note = |kind: ViolationKind, is_broken: bool| {
        if is_broken {
            broken.push(kind);
        }
    };
    for (index, row) in log.iter().enumerate() {
        let earlier = log[..index].iter();
        let earlier = earlier.filter(|other| other.key == row.key);
        let accepted = earlier.filter(|other| other.outcome == RowOutcome::Accepted);
        let accepted: Vec<&LogRow> = accepted.collect();
        let highest = accepted.iter().max_by_key(|other| pair(other)).copied();
        match row.outcome {
            RowOutcome::Rejected => {
                let reason = highest.is_some_and(|highest| {
                    let strangers = highest.token == row.token && highest.owner != row.owner;
                    strangers || pair(highest) >= pair(row)
                });
                note(RefusedWithoutReason, !(fence && reason));
                note(UntrueRefusal, row.seen != highest.and_then(|row| row.token));
            }
            RowOutcome::Duplicate => {
                let same = |other: &LogRow| {
                    (pair(other), &other.owner, other.body) == (pair(row), &row.owner, row.body)
                };
                note(UntrueRepetition, !highest.is_some_and(same));
            }
            RowOutcome::Accepted => {
                note(UnknownWriter, !is_known(record, row));
                note(BodyChanged, is_changed(record, row));
                note(ReadNotAccepted, !is_read(record, row, &accepted));
            }
        }
    }
    note(UntrueRefusal, misstated(record, log));
    note(AcknowledgedWriteLost, lost(record, log));
    note(PositionNamedTwice, named_twice(record));
    note(ValueNotAccepted, wrong_value(record, log));
    broken
}

fn pair(row: &LogRow) -> (u64, u64) {
    (row.token.map_or(0, |token| token.0), row.token_seq)
}

/// Some worker said that it would write as this owner.
fn is_known(record: &CaseRecord, row: &LogRow) -> bool {
    let mut events = record.history.iter();
    events.any(|event| match &event.kind {
        EventKind::Writing { owner, .. } => Some(owner) == row.owner.as_ref(),
        _ => false,
    })
}

/// Its owner never sent such a body, and said of each what it sent.
fn is_changed(record: &CaseRecord, row: &LogRow) -> bool {
    let sent = record.history.iter().filter_map(|event| match &event.kind {
        EventKind::Writing { owner, body, .. } => {
            (Some(owner) == row.owner.as_ref()).then_some(*body)
        }
        _ => None,
    });
    let sent: Vec<Option<BodyHash>> = sent.collect();
    row.body.is_some() && !sent.is_empty() && sent.iter().all(Option::is_some) && {
        !sent.contains(&row.body)
    }
}

/// What it was made from had been accepted, and its count goes on from there.
fn is_read(record: &CaseRecord, row: &LogRow, accepted: &[&LogRow]) -> bool {
    let Some(position) = row.based_on else {
        return true;
    };
    let basis = accepted.iter().find(|other| other.seq == position);
    if position > 0 && basis.is_none() {
        return false;
    }
    let ours = record.plan.workers.values().all(|plan| plan.is_ours);
    let count = |row: &LogRow| match &row.value {
        Some(fencepost::model::RowValue::Text(text)) => Some(count_in(text)),
        _ => None,
    };
    let before = match basis {
        Some(basis) => count(basis),
        None => Some(0),
    };
    match (before, count(row)) {
        (Some(before), Some(now)) if ours => now == before + 1,
        _ => true,
    }
}

/// A worker was told of another maximum than any that is logged for its refusals.
fn misstated(record: &CaseRecord, log: &[LogRow]) -> bool {
    record.history.iter().any(|event| match &event.kind {
        EventKind::WriteRejected { owner, seen, .. } => {
            let refused = log.iter().filter(|row| {
                row.outcome == RowOutcome::Rejected && row.owner.as_ref() == Some(owner)
            });
            let logged: Vec<_> = refused.map(|row| row.seen).collect();
            !logged.is_empty() && !logged.contains(&Some(*seen))
        }
        _ => false,
    })
}

fn acknowledged(record: &CaseRecord) -> impl Iterator<Item = (&String, u64)> {
    record.history.iter().filter_map(|event| match &event.kind {
        EventKind::WriteAccepted {
            owner, position, ..
        } => Some((owner, *position)),
        _ => None,
    })
}

fn lost(record: &CaseRecord, log: &[LogRow]) -> bool {
    acknowledged(record).any(|(owner, position)| {
        let there = |row: &LogRow| {
            row.seq == position
                && row.owner.as_ref() == Some(owner)
                && row.outcome == RowOutcome::Accepted
        };
        !log.iter().any(there)
    })
}

/// More often than once, and once more for each repetition that was logged.
fn named_twice(record: &CaseRecord) -> bool {
    let mut positions: Vec<u64> = acknowledged(record).map(|(_, position)| position).collect();
    let all = positions.len();
    positions.sort_unstable();
    positions.dedup();
    let rows = record.log.rows.iter();
    let repeated = rows
        .filter(|row| row.outcome == RowOutcome::Duplicate)
        .count();
    positions.len() + repeated < all
}

fn wrong_value(record: &CaseRecord, log: &[LogRow]) -> bool {
    let accepted = |row: &&LogRow| row.outcome == RowOutcome::Accepted;
    log.iter().filter(accepted).any(|row| {
        let mut later = log.iter().filter(|other| other.key == row.key);
        if later.any(|other| other.seq > row.seq && accepted(&other)) {
            return false;
        }
        let Some(value) = record.values.get(&row.key) else {
            return true;
        };
        let differs = row.value.as_ref().is_some_and(|last| last != value);
        let hash = BodyHash::of(value.as_bytes());
        differs || row.body.is_some_and(|last| last != hash)
    })
}
