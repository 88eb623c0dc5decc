use super::hold_book::HoldBook;
use super::names::Names;
use crate::model::{FencingToken, LogRow, RowOutcome, Violation, ViolationKind};
use std::collections::HashMap;

/// Judges the resource's log by itself, in its own order and by no clock: one
/// pass, one state for each key.
pub(super) fn violations(log: &[LogRow], names: &Names) -> Vec<Violation> {
    let mut keys: HashMap<&str, KeyState> = HashMap::new();
    let mut report = Report {
        log,
        names,
        found: Vec::new(),
    };
    for (index, row) in log.iter().enumerate() {
        let state = keys.entry(row.key.as_str()).or_default();
        if let Some(seen) = row.seen {
            state.learn(seen, index);
        }
        match row.outcome {
            RowOutcome::Rejected => {}
            RowOutcome::Duplicate => {
                if let Some(token) = row.token {
                    state.learn(token, index);
                }
            }
            RowOutcome::Accepted => state.accept(index, &mut report),
        }
    }
    report.found
}

/// All that one key's later rows are compared with.
#[derive(Default)]
struct KeyState<'a> {
    /// The highest token the resource has shown to know, and the first row that
    /// showed it. A refusal shows it as well as an acceptance does: a resource
    /// that forgot its fence in a restart is caught by its own earlier words.
    known: Option<(FencingToken, usize)>,
    last_accepted: Option<usize>,
    book: HoldBook<'a>,
}

impl<'a> KeyState<'a> {
    fn learn(&mut self, token: FencingToken, index: usize) {
        if self.known.is_none_or(|(highest, _)| token > highest) {
            self.known = Some((token, index));
        }
    }

    fn accept(&mut self, index: usize, report: &mut Report<'a, '_>) {
        let row = &report.log[index];
        if let (Some(token), Some((highest, shown_by))) = (row.token, self.known)
            && token < highest
        {
            report.stale_accept(index, highest, shown_by);
        }
        let before = self.book.enter(report.log, index);
        if let Some(other) = before.other_owner {
            report.token_two_owners(index, other);
        }
        if let Some(last) = self.last_accepted {
            let previous = &report.log[last];
            if !grew(previous, row) {
                report.token_regression(index, last);
            }
            if let Some(own) = before.own_last
                && by_another_hold(previous, row)
            {
                report.interleaved_writers(index, last, own);
            }
            if let Some(position) = row.based_on
                && previous.seq > position
                && by_another_owner(previous, row)
            {
                report.lost_update(index, last, position);
            }
        }
        if let Some(token) = row.token {
            self.learn(token, index);
        }
        // An anonymous write may be anybody's, so it does not come between two others.
        if row.token.is_some() || row.owner.is_some() {
            self.last_accepted = Some(index);
        }
    }
}

fn grew(previous: &LogRow, row: &LogRow) -> bool {
    match (previous.token, row.token) {
        (Some(before), Some(now)) => (now, row.token_seq) > (before, previous.token_seq),
        _ => true,
    }
}

/// What is missing in a row is no difference: only what both rows say can be one.
fn by_another_hold(previous: &LogRow, row: &LogRow) -> bool {
    differ(&previous.token, &row.token) || differ(&previous.owner, &row.owner)
}

/// Where an owner is missing, two tokens still tell two holds apart.
fn by_another_owner(previous: &LogRow, row: &LogRow) -> bool {
    if previous.owner.is_some() && row.owner.is_some() {
        previous.owner != row.owner
    } else {
        differ(&previous.token, &row.token)
    }
}

fn differ<T: PartialEq>(before: &Option<T>, now: &Option<T>) -> bool {
    before.is_some() && now.is_some() && before != now
}

/// Collects what was found, in words that name the real tokens and owners.
struct Report<'a, 'n> {
    log: &'a [LogRow],
    names: &'n Names<'n>,
    found: Vec<Violation>,
}

impl Report<'_, '_> {
    fn stale_accept(&mut self, index: usize, highest: FencingToken, shown_by: usize) {
        let shown = if shown_by == index {
            format!("this very row says that token {highest} had been seen")
        } else {
            let row = self.log[shown_by].seq;
            format!("row {row} shows that the resource had known token {highest}")
        };
        let detail = format!(
            "{} wrote with {}, although {shown}",
            self.writer(index),
            self.token(index)
        );
        let against = (shown_by != index).then_some(shown_by);
        self.add(ViolationKind::StaleAccept, index, against, detail);
    }

    fn token_regression(&mut self, index: usize, last: usize) {
        let detail = format!(
            "{} wrote with {}, seq {}, directly after {} had written with {}, seq {}",
            self.writer(index),
            self.token(index),
            self.log[index].token_seq,
            self.writer(last),
            self.token(last),
            self.log[last].token_seq,
        );
        self.add(ViolationKind::TokenRegression, index, Some(last), detail);
    }

    fn token_two_owners(&mut self, index: usize, other: usize) {
        let detail = format!(
            "{} was accepted for {} at row {} and for {} at row {}",
            self.token(index),
            self.writer(other),
            self.log[other].seq,
            self.writer(index),
            self.log[index].seq,
        );
        self.add(ViolationKind::TokenTwoOwners, index, Some(other), detail);
    }

    fn interleaved_writers(&mut self, index: usize, between: usize, own: usize) {
        let detail = format!(
            "{} wrote at row {} and again at row {} with {}; in between, at row {}, {} wrote with {}",
            self.writer(index),
            self.log[own].seq,
            self.log[index].seq,
            self.token(index),
            self.log[between].seq,
            self.writer(between),
            self.token(between),
        );
        let kind = ViolationKind::InterleavedWriters;
        self.add(kind, index, Some(between), detail);
    }

    fn lost_update(&mut self, index: usize, last: usize, position: u64) {
        let detail = format!(
            "{} wrote with {} what it had made from position {position}, \
             although the write of {} with {} stood at position {}",
            self.writer(index),
            self.token(index),
            self.writer(last),
            self.token(last),
            self.log[last].seq,
        );
        self.add(ViolationKind::LostUpdate, index, Some(last), detail);
    }

    fn add(&mut self, kind: ViolationKind, index: usize, against: Option<usize>, detail: String) {
        self.found.push(Violation {
            kind,
            key: self.log[index].key.clone(),
            row: self.log[index].seq,
            against: against.map(|index| self.log[index].seq),
            detail,
        });
    }

    fn writer(&self, index: usize) -> String {
        self.names.full(self.log[index].owner.as_deref())
    }

    fn token(&self, index: usize) -> String {
        match self.log[index].token {
            Some(token) => format!("token {token}"),
            None => "no token".to_owned(),
        }
    }
}
