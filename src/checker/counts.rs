use super::holds::Hold;
use super::names::Names;
use crate::model::{
    CaseRecord, Counts, Event, EventKind, FencingToken, LogRow, Overlap, ReleaseOutcome,
    RowOutcome, Step,
};
use std::collections::{BTreeMap, HashMap, HashSet};

pub(super) struct Tally {
    pub counts: Counts,
    pub last_writers: BTreeMap<String, (String, Option<FencingToken>)>,
}

/// Counts what the expectations of a scenario speak of.
pub(super) fn tally(
    record: &CaseRecord,
    holds: &[Hold],
    overlaps: &[Overlap],
    names: &Names,
) -> Tally {
    let grants = grants_by_key(holds);
    let mut counts = told_by_workers(&record.history);
    let mut keys: HashMap<&str, Writers> = HashMap::new();
    for row in &record.log {
        match row.outcome {
            RowOutcome::Accepted => {
                counts.accepted_writes += 1;
                let writers = keys.entry(row.key.as_str()).or_default();
                writers.add(row, names);
            }
            RowOutcome::Duplicate => counts.duplicates += 1,
            RowOutcome::Rejected => {
                counts.rejections += 1;
                counts.stale_rejections += u64::from(is_stale(row));
                counts.rightful_rejections += u64::from(is_rightful(row, &grants));
            }
        }
    }
    let most_writers = keys.values().map(|writers| writers.distinct.len()).max();
    counts.accepted_writers = most_writers.unwrap_or(0) as u64;
    counts.definite_overlaps = overlaps.iter().filter(|overlap| overlap.definite).count() as u64;
    counts.possible_overlaps = overlaps.len() as u64 - counts.definite_overlaps;
    let last_writers = keys
        .into_iter()
        .filter_map(|(key, writers)| {
            let row = writers.last?;
            let writer = names.short(row.owner.as_deref()).to_owned();
            Some((key.to_owned(), (writer, row.token)))
        })
        .collect();
    Tally {
        counts,
        last_writers,
    }
}

/// What only the workers themselves can tell.
fn told_by_workers(history: &[Event]) -> Counts {
    let mut counts = Counts::default();
    for event in history {
        match &event.kind {
            EventKind::Released { outcome, .. } => {
                counts.foreign_releases += u64::from(*outcome == ReleaseOutcome::FreedAnother);
            }
            EventKind::Lost { .. } => counts.lost_leases += 1,
            EventKind::Failed { during, .. } => {
                counts.failed_acquires += u64::from(*during == Step::Acquire);
            }
            _ => {}
        }
    }
    counts
}

/// A refusal for a token below one the resource had seen. A repetition of the
/// highest token is refused, too, but nobody was late there.
pub(super) fn is_stale(row: &LogRow) -> bool {
    row.outcome == RowOutcome::Rejected
        && matches!((row.token, row.seen), (Some(got), Some(seen)) if got < seen)
}

#[derive(Default)]
struct Writers<'a> {
    distinct: HashSet<&'a str>,
    last: Option<&'a LogRow>,
}

impl<'a> Writers<'a> {
    fn add(&mut self, row: &'a LogRow, names: &Names<'a>) {
        // A hold writes several times in a row; only a change of owner is worth a look.
        if self.last.is_none_or(|last| last.owner != row.owner) {
            self.distinct.insert(names.short(row.owner.as_deref()));
        }
        self.last = Some(row);
    }
}

/// The granted holds of each key, by the time of the grant.
fn grants_by_key<'h, 'a>(holds: &'h [Hold<'a>]) -> HashMap<&'a str, Vec<&'h Hold<'a>>> {
    let mut by_key: HashMap<&str, Vec<&Hold>> = HashMap::new();
    for hold in holds.iter().filter(|hold| hold.grant.is_some()) {
        by_key.entry(hold.key).or_default().push(hold);
    }
    by_key
}

/// Whether the one who was refused was the latest to be granted the key and had
/// not given it up: then the resource refused the rightful holder.
fn is_rightful(row: &LogRow, grants: &HashMap<&str, Vec<&Hold>>) -> bool {
    let Some(grants) = grants.get(row.key.as_str()) else {
        return false;
    };
    let granted_so_far = grants.partition_point(|hold| hold.from_ns <= row.at_ns);
    let Some(latest) = granted_so_far.checked_sub(1).map(|index| grants[index]) else {
        return false;
    };
    let is_its_own = latest.grant.map(|grant| grant.owner) == row.owner.as_deref();
    let still_held = !latest.ended || row.at_ns < latest.to_ns;
    is_its_own && still_held
}
