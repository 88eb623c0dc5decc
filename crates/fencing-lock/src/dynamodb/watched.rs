use super::record::{DynamoDbRecord, Seen};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// What this process saw of each key last, and since when.
///
/// Nothing at the server ends a lease. A holder gives its item a new version before its own
/// deadline. So whoever has seen one version for the whole lease by its own monotonic clock
/// knows that the holder's deadline has passed: it counts from before the version was sent.
///
/// A key that nobody asked about for long is forgotten. Then its watch begins anew.
#[derive(Default)]
pub(super) struct Watched {
    keys: Mutex<Generations>,
}

#[derive(Default)]
struct Generations {
    young: BTreeMap<String, Sighting>,
    old: BTreeMap<String, Sighting>,
}

#[derive(Clone)]
struct Sighting {
    record: DynamoDbRecord,
    since: Instant,
    latest: Instant,
}

/// What to do about a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outlook {
    /// A try that demands this would be granted, as far as is known.
    Open(Seen),
    /// Its hold expires then, unless it is renewed or released before.
    Held { until: Instant },
}

/// There are at most twice as many.
const GENERATION: usize = 4096;

impl Watched {
    /// Notes the answer that has just come.
    pub(super) fn note(&self, key: &str, record: Option<DynamoDbRecord>) {
        let now = Instant::now();
        let mut keys = self.keys.lock();
        let before = keys.take(key);
        let Some(record) = record else {
            return;
        };
        let since = match before {
            Some(before) if before.record.version == record.version => before.since,
            _ => now,
        };
        let sighting = Sighting {
            record,
            since,
            latest: now,
        };
        if keys.young.len() >= GENERATION {
            keys.old = std::mem::take(&mut keys.young);
        }
        keys.young.insert(key.to_owned(), sighting);
    }

    /// Returns what is known of a key.
    pub(super) fn outlook(&self, key: &str) -> Outlook {
        let keys = self.keys.lock();
        let Some(Sighting { record, since, .. }) = keys.get(key) else {
            return Outlook::Open(Seen::NoItem);
        };
        match &record.hold {
            Some(hold) if Instant::now() < *since + with_drift(hold.lease) => Outlook::Held {
                until: *since + with_drift(hold.lease),
            },
            Some(_) | None => Outlook::Open(Seen::Version(record.version.clone())),
        }
    }

    /// Returns until when a key is held, if somebody of this process has just asked.
    pub(super) fn held_just_now(&self, key: &str, within: Duration) -> Option<Instant> {
        let latest = self.keys.lock().get(key)?.latest;
        match self.outlook(key) {
            Outlook::Held { until } if latest.elapsed() < within => Some(until),
            _ => None,
        }
    }
}

impl Generations {
    fn get(&self, key: &str) -> Option<&Sighting> {
        self.young.get(key).or_else(|| self.old.get(key))
    }

    fn take(&mut self, key: &str) -> Option<Sighting> {
        self.young.remove(key).or_else(|| self.old.remove(key))
    }
}

/// The holder's clock may run a little slower than ours.
fn with_drift(lease: Duration) -> Duration {
    lease + lease / 100 + Duration::from_millis(2)
}

#[cfg(test)]
mod tests {
    use super::super::record::DynamoDbHold;
    use super::*;
    use tokio::time::advance;

    const LEASE: Duration = Duration::from_secs(10);

    fn held(version: &str) -> Option<DynamoDbRecord> {
        let owner = "somebody".to_owned();
        Some(DynamoDbRecord {
            version: version.to_owned(),
            hold: Some(DynamoDbHold {
                owner,
                lease: LEASE,
            }),
            fence: 1,
        })
    }

    fn is_open(watched: &Watched, version: &str) -> bool {
        watched.outlook("k") == Outlook::Open(Seen::Version(version.to_owned()))
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_version_that_was_seen_for_the_whole_lease_is_over() {
        let watched = Watched::default();
        assert_eq!(watched.outlook("k"), Outlook::Open(Seen::NoItem));
        watched.note("k", held("1"));
        advance(LEASE).await;
        // The same version was seen at both ends, and clocks may drift.
        watched.note("k", held("1"));
        assert!(!is_open(&watched, "1"));
        advance(LEASE / 50).await;
        assert!(is_open(&watched, "1"));
        // A renewal begins a new watch.
        watched.note("k", held("2"));
        assert!(!is_open(&watched, "2"));
        advance(LEASE).await;
        watched.note("k", held("3"));
        advance(LEASE).await;
        assert!(!is_open(&watched, "3"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_free_item_is_open_at_once_and_one_that_is_gone_is_not_remembered() {
        let watched = Watched::default();
        let free = held("1").map(|record| DynamoDbRecord {
            hold: None,
            ..record
        });
        watched.note("k", free);
        assert!(is_open(&watched, "1"));
        watched.note("k", None);
        assert_eq!(watched.outlook("k"), Outlook::Open(Seen::NoItem));
        watched.note("k", held("2"));
        let within = Duration::from_secs(1);
        assert!(watched.held_just_now("k", within).is_some());
        advance(2 * within).await;
        assert!(watched.held_just_now("k", within).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_keys_are_remembered_and_no_more() {
        let watched = Watched::default();
        for number in 0..3 * GENERATION {
            watched.note(&number.to_string(), held("1"));
        }
        let keys = watched.keys.lock();
        assert!(keys.young.len() + keys.old.len() <= 2 * GENERATION);
        let last = (3 * GENERATION - 1).to_string();
        assert!(keys.get(&last).is_some() && keys.get("0").is_none());
    }
}
