//! Turns the changes of items in a DynamoDB into rows of `locks.jsonl`.

use crate::services::observe::*;
use fencing_lock::servers::{DynamoDbHold, DynamoDbRecord};

/// The leases that are held, by key.
pub(super) struct Leases {
    node: String,
    /// When each key was seen to change last.
    changed_ns: HashMap<String, u64>,
}

/// A change is seen a little later than it happens, and not always by as much.
const SEEN_WITHIN_NS: u64 = 500_000_000;

impl Leases {
    pub(super) fn new(node: &str) -> Leases {
        Leases {
            node: node.to_owned(),
            changed_ns: HashMap::new(),
        }
    }

    /// Returns what became of the lock. A hold that did not change for its whole lease has
    /// expired, whoever ends it then.
    pub(super) fn changed(
        &mut self,
        at_ns: u64,
        key: &str,
        before: Option<DynamoDbRecord>,
        after: Option<DynamoDbRecord>,
    ) -> Vec<LockEvent> {
        let changed_ns = self.changed_ns.insert(key.to_owned(), at_ns);
        let row = |kind, record: &DynamoDbRecord, hold: &DynamoDbHold| LockEvent {
            at_ns,
            node: self.node.clone(),
            key: key.to_owned(),
            kind,
            owner: Some(hold.owner.clone()),
            token: Some(FencingToken(record.fence)),
        };
        let is_over = |hold: &DynamoDbHold| {
            let lease_ns = hold.lease.as_nanos() as u64;
            changed_ns.is_none_or(|ns| ns + lease_ns <= at_ns + SEEN_WITHIN_NS.min(lease_ns / 2))
        };
        let held = |record: Option<DynamoDbRecord>| {
            let record = record?;
            record.hold.clone().map(|hold| (record, hold))
        };
        use LockEventKind::{Expired, Granted, Released, Renewed};
        match (held(before), held(after)) {
            (Some((_, was)), Some((record, hold))) if was.owner == hold.owner => {
                vec![row(Renewed, &record, &hold)]
            }
            (Some((old, was)), Some((record, hold))) => {
                // A lock that is taken from its holder was neither released nor has it expired.
                let expired = is_over(&was).then(|| row(Expired, &old, &was));
                let granted = row(Granted, &record, &hold);
                expired.into_iter().chain([granted]).collect()
            }
            (Some((old, was)), None) if is_over(&was) => vec![row(Expired, &old, &was)],
            (Some((old, was)), None) => vec![row(Released, &old, &was)],
            (None, Some((record, hold))) => vec![row(Granted, &record, &hold)],
            (None, None) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::joined;

    const SECOND_NS: u64 = 1_000_000_000;

    fn record(owner: Option<&str>, fence: u64) -> Option<DynamoDbRecord> {
        let lease = Duration::from_secs(2);
        let hold = owner.map(|owner| DynamoDbHold {
            owner: owner.to_owned(),
            lease,
        });
        let version = "v".to_owned();
        Some(DynamoDbRecord {
            version,
            hold,
            fence,
        })
    }

    #[test]
    fn a_lock_goes_from_hand_to_hand() {
        let mut leases = Leases::new("dynamodb");
        let (free, held) = (
            |fence| record(None, fence),
            |owner, fence| record(Some(owner), fence),
        );
        for (at_s, before, after, rows) in [
            (1, None, None, ""),
            (1, None, held("a", 1), "Granted a 1"),
            (2, held("a", 1), held("a", 1), "Renewed a 1"),
            (3, held("a", 1), free(1), "Released a 1"),
            (4, free(1), held("b", 2), "Granted b 2"),
            (6, held("b", 2), held("c", 3), "Expired b 2, Granted c 3"),
            (9, held("c", 3), free(3), "Expired c 3"),
            (9, free(3), free(3), ""),
            (10, free(3), held("d", 4), "Granted d 4"),
            (11, held("d", 4), held("thief", 5), "Granted thief 5"),
        ] {
            let seen = leases.changed(at_s * SECOND_NS, "k", before, after);
            let words = |row: LockEvent| {
                let owner = row.owner.unwrap_or_default();
                format!("{:?} {owner} {}", row.kind, row.token.unwrap())
            };
            assert_eq!(joined(seen.into_iter().map(words), ", "), rows);
        }
    }
}
