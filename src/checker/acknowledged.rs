use super::names::Names;
use super::positions::Positions;
use crate::model::{CaseRecord, EventKind, FencingToken, LogRow, RowOutcome};
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
    for event in &record.history {
        let EventKind::WriteAccepted {
            key,
            token,
            owner,
            position,
            ..
        } = &event.kind
        else {
            continue;
        };
        let row = positions.row(*position);
        if row.is_some_and(|row| is_that_write(row, key, *token, owner)) {
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
                key: key.clone(),
                row: *position,
                against: None,
                detail: format!("{told}, but {}", what_stands_there(row, names)),
            }),
        }
    }
    found
}

/// A duplicate is answered as the first time, so either row will do. A log
/// without tokens (the fence is off and none was sent) is compared by owner.
pub(super) fn is_that_write(row: &LogRow, key: &str, token: FencingToken, owner: &str) -> bool {
    row.outcome != RowOutcome::Rejected
        && row.key == key
        && match row.token {
            Some(logged) => logged == token,
            None => row.owner.as_deref().is_none_or(|logged| logged == owner),
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
