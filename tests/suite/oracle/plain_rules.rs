//! The rules of the log as one would say them aloud, each looking through all
//! earlier rows again: slow, and easy to believe.

use fencepost::model::{LogRow, RowOutcome, ViolationKind};

/// What the log alone shows, in the order of its rows.
pub fn violations(log: &[LogRow], fence: bool) -> Vec<(u64, ViolationKind)> {
    let mut found = Vec::new();
    for (index, row) in log.iter().enumerate() {
        if row.outcome != RowOutcome::Accepted {
            continue;
        }
        let same_key = log[..index].iter().filter(|earlier| earlier.key == row.key);
        let earlier: Vec<&LogRow> = same_key.collect();
        let accepted: Vec<&LogRow> = earlier
            .iter()
            .copied()
            .filter(|earlier| earlier.outcome == RowOutcome::Accepted)
            .collect();
        // Without a fence a hold may send its last write again, and nothing comes of it.
        let last = accepted.last();
        let again = !fence && last.is_some_and(|last| is_same_write(row, last));
        let broken = [
            (ViolationKind::StaleAccept, stale(row, &earlier)),
            (
                ViolationKind::TokenRegression,
                !again && regression(row, &accepted),
            ),
            (ViolationKind::TokenTwoOwners, two_owners(row, &accepted)),
            (
                ViolationKind::InterleavedWriters,
                interleaved(row, &accepted),
            ),
            (ViolationKind::LostUpdate, lost_update(row, &accepted)),
        ];
        let broken = broken.into_iter().filter(|&(_, is_broken)| is_broken);
        found.extend(broken.map(|(kind, _)| (row.seq, kind)));
    }
    found
}

fn is_same_write(row: &LogRow, other: &LogRow) -> bool {
    (&row.owner, row.token, row.token_seq) == (&other.owner, other.token, other.token_seq)
        && (row.body, &row.value) == (other.body, &other.value)
}

/// A row without a token says nothing about tokens.
fn stale(row: &LogRow, earlier: &[&LogRow]) -> bool {
    let shows_higher = |other: &&LogRow| {
        let applied = other.outcome != RowOutcome::Rejected;
        other.seen > row.token || (applied && other.token > row.token)
    };
    row.token.is_some() && (row.seen > row.token || earlier.iter().any(shows_higher))
}

fn regression(row: &LogRow, accepted: &[&LogRow]) -> bool {
    let has_not_grown = |last: &&LogRow| {
        last.token.is_some() && (row.token, row.token_seq) <= (last.token, last.token_seq)
    };
    row.token.is_some() && accepted.last().is_some_and(has_not_grown)
}

/// Told once, when a new owner comes to a token that has one already.
fn two_owners(row: &LogRow, accepted: &[&LogRow]) -> bool {
    let with_token = accepted.iter().filter(|other| other.token == row.token);
    let owners: Vec<_> = with_token.map(|other| &other.owner).collect();
    row.token.is_some() && !owners.is_empty() && !owners.contains(&&row.owner)
}

fn interleaved(row: &LogRow, accepted: &[&LogRow]) -> bool {
    let is_same_hold = |other: &&LogRow| (&other.owner, other.token) == (&row.owner, row.token);
    let has_written = accepted.iter().any(is_same_hold);
    has_written && !accepted.last().is_some_and(is_same_hold)
}

fn lost_update(row: &LogRow, accepted: &[&LogRow]) -> bool {
    accepted.last().is_some_and(|last| {
        row.based_on.is_some_and(|position| last.seq > position) && last.owner != row.owner
    })
}
