use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// When leases end, by the monotonic clock of the leader: nobody else knows, and a new leader
/// begins all of them anew.
#[derive(Default)]
pub struct LeaseTimes {
    ends: BTreeMap<i64, Duration>,
    /// They are over, and the log is to say so.
    revoking: BTreeSet<i64>,
}

impl LeaseTimes {
    pub fn begin(&mut self, lease: i64, until: Duration) {
        self.ends.insert(lease, until);
    }

    pub fn forget(&mut self, lease: i64) {
        self.ends.remove(&lease);
        self.revoking.remove(&lease);
    }

    /// Returns what is left of a lease; nothing if it is over and not revoked yet.
    pub fn left(&self, lease: i64, now: Duration) -> Option<Duration> {
        let end = self.ends.get(&lease)?;
        Some(end.saturating_sub(now))
    }

    /// Returns the leases that are over, each once.
    pub fn take_expired(&mut self, now: Duration) -> Vec<i64> {
        let over = self.ends.iter().filter(|(_, end)| **end <= now);
        let over: Vec<i64> = over.map(|(lease, _)| *lease).collect();
        over.into_iter()
            .filter(|lease| self.revoking.insert(*lease))
            .collect()
    }
}
