use super::*;
use rustc_hash::FxHashSet;

pub(super) struct Tally {
    pub counts: Counts,
    pub last_writers: BTreeMap<String, (String, Option<FencingToken>)>,
}

/// Counts everything that the expectations of a scenario refer to.
pub(super) fn tally(case: &Case, overlaps: &Overlaps) -> Tally {
    let (sound, names, log) = (case.sound, case.names, &case.record.log);
    let grants = Grants::of(&case.holds.all, case.servers);
    let mut counts = told_by_workers(&sound.history);
    let mut keys: Vec<Writers> = Vec::new();
    keys.resize_with(log.key_count(), Writers::default);
    for row in sound.log.iter() {
        match row.outcome {
            RowOutcome::Accepted => {
                counts.accepted_writes += 1;
                keys[row.key.0 as usize].add(row, names);
            }
            RowOutcome::Duplicate => counts.duplicates += 1,
            RowOutcome::Rejected => {
                counts.rejections += 1;
                counts.stale_rejections += u64::from(is_stale(row));
                let (key, owner) = (log.key_of(row), log.owner_of(row));
                let is_rightful = grants.is_rightful(key, owner, row.at_ns);
                counts.rightful_rejections += u64::from(is_rightful);
            }
        }
    }
    let most_writers = keys.iter().map(|writers| writers.distinct.len()).max();
    counts.accepted_writers = most_writers.unwrap_or(0) as u64;
    counts.definite_overlaps = overlaps.definite;
    counts.possible_overlaps = overlaps.possible;
    let last_writers = keys.iter().filter_map(|writers| {
        let row = writers.last?;
        let writer = names.short(row).to_owned();
        Some((log.key_of(row).to_owned(), (writer, row.token)))
    });
    Tally {
        counts,
        last_writers: last_writers.collect(),
    }
}

/// Counts that only the workers themselves report.
fn told_by_workers(history: &[&Event]) -> Counts {
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

/// Returns whether a write was refused for a token below one that the resource had seen.
/// A repetition of the highest token is refused, too, but nobody was late there.
pub(super) fn is_stale(row: &Row) -> bool {
    row.outcome == RowOutcome::Rejected
        && matches!((row.token, row.seen), (Some(got), Some(seen)) if got < seen)
}

#[derive(Default)]
struct Writers<'a> {
    distinct: FxHashSet<Writer>,
    last: Option<&'a Row>,
}

impl<'a> Writers<'a> {
    fn add(&mut self, row: &'a Row, names: &Names) {
        // A hold writes several times in a row, so only a change of owner matters.
        if self.last.is_none_or(|last| last.owner != row.owner) {
            self.distinct.insert(names.number(row));
        }
        self.last = Some(row);
    }
}

/// The rightful holders of each key, by the server's own record first and by the workers'
/// reports second.
pub(super) struct Grants<'h, 'a> {
    holds: &'h [Hold<'a>],
    servers: &'h Servers<'h, 'a>,
    /// The granted holds of each key, in the order of their grants.
    by_key: HashMap<&'a str, Vec<usize>>,
    by_owner: HashMap<(&'a str, &'a str), usize>,
}

impl<'h, 'a> Grants<'h, 'a> {
    pub fn of(holds: &'h [Hold<'a>], servers: &'h Servers<'h, 'a>) -> Grants<'h, 'a> {
        let mut by_key: HashMap<&str, Vec<usize>> = HashMap::new();
        let mut by_owner = HashMap::new();
        for (index, hold) in holds.iter().enumerate() {
            if let Some(grant) = hold.grant {
                by_key.entry(hold.key).or_default().push(index);
                by_owner.entry((hold.key, grant.owner)).or_insert(index);
            }
        }
        Grants {
            holds,
            servers,
            by_key,
            by_owner,
        }
    }

    /// Returns whether the refused writer held the key, according to its servers if
    /// somebody watched them. If nobody did, the latest worker to be granted the key
    /// holds it until it gives it up.
    pub fn is_rightful(&self, key: &str, owner: Option<&str>, at_ns: u64) -> bool {
        let Some(own) = owner.and_then(|owner| self.by_owner.get(&(key, owner))) else {
            return false;
        };
        let own = &self.holds[*own];
        let still_claims = !own.ended || at_ns < own.to_ns;
        if let Some(held) = self.servers.held_at(own, at_ns) {
            return held && still_claims;
        }
        let Some(grants) = self.by_key.get(key) else {
            return false;
        };
        let granted_so_far = grants.partition_point(|&it| self.holds[it].from_ns <= at_ns);
        let latest = granted_so_far.checked_sub(1).map(|latest| grants[latest]);
        let is_latest = latest.is_some_and(|latest| self.holds[latest].owner() == owner);
        is_latest && still_claims
    }
}
