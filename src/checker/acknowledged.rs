use super::names::Names;
use super::positions::Positions;
use crate::model::{CaseRecord, Event, EventKind, FencingToken, LogRow, RowOutcome};
use crate::model::{Violation, ViolationKind};

pub(super) struct Acknowledged {
    pub violations: Vec<Violation>,
    pub doubts: Vec<String>,
}

/// Looks up every write that a worker was told is accepted.
///
/// Where another row stands at that position, the write is gone for certain.
/// Where nothing stands there, it is gone only if the log is otherwise whole;
/// in a record with gaps it may be a row that nobody collected.
pub(super) fn judge(record: &CaseRecord, positions: &Positions, names: &Names) -> Acknowledged {
    let mut found = Acknowledged {
        violations: Vec::new(),
        doubts: Vec::new(),
    };
    let log_is_whole = record.gaps.is_empty() && positions.whole();
    for told in acknowledged_writes(&record.history) {
        let Told {
            event,
            key,
            token,
            owner,
            position,
        } = told;
        let row = positions.row(position);
        if row.is_some_and(|row| told.is_at(row)) {
            continue;
        }
        let told = format!(
            "{} (owner {owner}) was told that its write on {key} with token {token} is accepted at position {position}",
            event.worker
        );
        match row {
            None if !log_is_whole => found.doubts.push(format!(
                "{told}; the log has no such row, but the record is incomplete"
            )),
            _ => found.violations.push(Violation {
                kind: ViolationKind::AcknowledgedWriteLost,
                key: key.to_owned(),
                row: position,
                against: None,
                detail: format!("{told}, but {}", what_stands_there(row, names)),
            }),
        }
    }
    found
}

/// A worker was told that its write is accepted.
#[derive(Clone, Copy)]
pub(super) struct Told<'a> {
    pub event: &'a Event,
    pub key: &'a str,
    pub token: FencingToken,
    pub owner: &'a str,
    pub position: u64,
}

pub(super) fn acknowledged_writes(history: &[Event]) -> impl Iterator<Item = Told<'_>> {
    history.iter().filter_map(|event| match &event.kind {
        EventKind::WriteAccepted {
            key,
            token,
            owner,
            position,
            ..
        } => Some(Told {
            event,
            key,
            token: *token,
            owner,
            position: *position,
        }),
        _ => None,
    })
}

impl Told<'_> {
    /// A duplicate is answered as the first time, so either row will do. A log
    /// without tokens (the fence is off and none was sent) is compared by owner.
    pub fn is_at(&self, row: &LogRow) -> bool {
        row.outcome != RowOutcome::Rejected
            && row.key == self.key
            && match row.token {
                Some(logged) => logged == self.token,
                None => row
                    .owner
                    .as_deref()
                    .is_none_or(|logged| logged == self.owner),
            }
    }
}

fn what_stands_there(row: Option<&LogRow>, names: &Names) -> String {
    let Some(row) = row else {
        return "the log has no such row".to_owned();
    };
    let what = match row.outcome {
        RowOutcome::Accepted => "a write",
        RowOutcome::Rejected => "a refused write",
        RowOutcome::Duplicate => "a repeated write",
    };
    let token = match row.token {
        Some(token) => format!("token {token}"),
        None => "no token".to_owned(),
    };
    let writer = names.full(row.owner.as_deref());
    format!(
        "the log has {what} of {writer} on {} with {token} there",
        row.key
    )
}
