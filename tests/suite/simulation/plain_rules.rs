use fencepost::model::{LogRow, RowOutcome, ViolationKind};

/// The rules of the log as one would say them aloud, each looking through all
/// earlier rows again: slow, and easy to believe. Every row here has a token
/// and an owner.
pub fn violations(log: &[LogRow]) -> Vec<(u64, ViolationKind)> {
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
        let broken = [
            (ViolationKind::StaleAccept, stale(row, &earlier)),
            (ViolationKind::TokenRegression, regression(row, &accepted)),
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

fn stale(row: &LogRow, earlier: &[&LogRow]) -> bool {
    let shows_higher = |other: &&LogRow| {
        let applied = other.outcome != RowOutcome::Rejected;
        other.seen > row.token || (applied && other.token > row.token)
    };
    row.seen > row.token || earlier.iter().any(shows_higher)
}

fn regression(row: &LogRow, accepted: &[&LogRow]) -> bool {
    accepted
        .last()
        .is_some_and(|last| (row.token, row.token_seq) <= (last.token, last.token_seq))
}

/// Told once, when a new owner comes to a token that has one already.
fn two_owners(row: &LogRow, accepted: &[&LogRow]) -> bool {
    let with_token = accepted.iter().filter(|other| other.token == row.token);
    let owners: Vec<_> = with_token.map(|other| &other.owner).collect();
    !owners.is_empty() && !owners.contains(&&row.owner)
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
