//! Answers of a lock, as a worker records them.

use crate::clock::raw_monotonic_ns;
use crate::model;
use fencing_lock::{Lease, ReleaseOutcome};
use std::time::Duration;
use tokio::time::Instant;

/// Returns until when the holder may rely on its lease, by a clock that nobody can skew.
pub fn valid_until_ns(lease: &Lease) -> u64 {
    let (deadline, now, now_ns) = (lease.deadline(), Instant::now(), raw_monotonic_ns());
    let ns = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    match deadline.checked_duration_since(now) {
        Some(left) => now_ns.saturating_add(ns(left)),
        None => now_ns.saturating_sub(ns(now.duration_since(deadline))),
    }
}

pub fn outcome(outcome: ReleaseOutcome) -> model::ReleaseOutcome {
    match outcome {
        ReleaseOutcome::Released => model::ReleaseOutcome::Released,
        ReleaseOutcome::Expired => model::ReleaseOutcome::Expired,
        ReleaseOutcome::Superseded => model::ReleaseOutcome::Superseded,
        ReleaseOutcome::FreedAnother => model::ReleaseOutcome::FreedAnother,
        ReleaseOutcome::Unknown => model::ReleaseOutcome::Unknown,
    }
}
