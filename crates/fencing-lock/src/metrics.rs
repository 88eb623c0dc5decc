use super::{HeldLeases, Requests};
use crate::ReleaseOutcome;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::time::Duration;

/// The counts of one process's locks. Clones count together.
///
/// There is no label for the key or the owner, because both are unbounded. The current
/// holder is the process whose `lock_leases_held` is above 0, and `lock_current_token`
/// shows its grant.
#[derive(Clone, Debug)]
pub struct LockMetrics {
    pub acquire_attempts: Counter,
    pub acquire_successes: Counter,
    pub acquire_timeouts: Counter,
    /// All requests to the servers, of all clients that count together.
    pub requests: Requests,
    pub acquire_seconds: Histogram,
    pub held_seconds: Histogram,
    pub renews: Counter,
    pub renew_failures: Counter,
    pub release_by_non_owner: Counter,
    /// Stays at 0 unless somebody uses the release whose name says that it is unsafe.
    pub release_by_non_owner_applied: Counter,
    pub leases_held: HeldLeases,
    /// The callers of this process that wait for a lock.
    pub queue_length: Gauge,
}

impl Default for LockMetrics {
    fn default() -> LockMetrics {
        LockMetrics {
            acquire_attempts: Counter::default(),
            acquire_successes: Counter::default(),
            acquire_timeouts: Counter::default(),
            requests: Requests::default(),
            // The buckets go from half a millisecond to 16 s: from a local round trip to
            // a patient waiter.
            acquire_seconds: Histogram::new(exponential_buckets(0.000_5, 2.0, 16)),
            held_seconds: Histogram::new(exponential_buckets(0.001, 2.0, 16)),
            renews: Counter::default(),
            renew_failures: Counter::default(),
            release_by_non_owner: Counter::default(),
            release_by_non_owner_applied: Counter::default(),
            leases_held: HeldLeases::default(),
            queue_length: Gauge::default(),
        }
    }
}

impl LockMetrics {
    /// Registers all metrics. Counters get their `_total` when they are written.
    pub fn register(&self, registry: &mut Registry) {
        let mut counter = |name: &str, help: &str, counter: &Counter| {
            registry.register(name, help, counter.clone());
        };
        counter(
            "lock_acquire_attempts",
            "Tries to acquire a lock that were sent to the server",
            &self.acquire_attempts,
        );
        counter(
            "lock_acquire_successes",
            "Locks that were granted",
            &self.acquire_successes,
        );
        counter(
            "lock_acquire_timeouts",
            "Waits for a lock that ended at their deadline",
            &self.acquire_timeouts,
        );
        counter(
            "lock_renews",
            "Leases that were prolonged, once for each time",
            &self.renews,
        );
        counter(
            "lock_renew_failures",
            "Renewals that were refused or not answered",
            &self.renew_failures,
        );
        counter(
            "lock_release_by_non_owner",
            "Releases of a lock that was not the releaser's any more",
            &self.release_by_non_owner,
        );
        counter(
            "lock_release_by_non_owner_applied",
            "Releases that freed somebody else's lock",
            &self.release_by_non_owner_applied,
        );
        registry.register(
            "lock_acquire_seconds",
            "From the first try to the grant",
            self.acquire_seconds.clone(),
        );
        registry.register(
            "lock_held_seconds",
            "From the answer that granted it to the answered release",
            self.held_seconds.clone(),
        );
        registry.register(
            "lock_queue_length",
            "Callers of this process that wait for a lock",
            self.queue_length.clone(),
        );
        registry.register_collector(Box::new(self.requests.clone()));
        registry.register_collector(Box::new(self.leases_held.clone()));
    }

    /// Counts one waiter until the returned value is dropped.
    pub(super) fn waiting(&self) -> Waiting {
        self.queue_length.inc();
        Waiting(self.queue_length.clone())
    }

    /// Counts one attempt when the returned value is dropped.
    pub(super) fn attempt(&self) -> CountedAttempt {
        CountedAttempt(Some(self.acquire_attempts.clone()))
    }

    pub(super) fn granted(&self, waited: Duration) {
        self.acquire_successes.inc();
        self.acquire_seconds.observe(waited.as_secs_f64());
    }

    pub(super) fn released(&self, outcome: ReleaseOutcome, held: Duration) {
        self.ended(held);
        match outcome {
            ReleaseOutcome::Expired | ReleaseOutcome::Superseded => {
                self.release_by_non_owner.inc();
            }
            #[cfg(feature = "unsafe-modes")]
            ReleaseOutcome::FreedAnother => {
                self.release_by_non_owner.inc();
                self.release_by_non_owner_applied.inc();
            }
            ReleaseOutcome::Released | ReleaseOutcome::Unknown => {}
        }
    }

    pub(super) fn ended(&self, held: Duration) {
        self.held_seconds.observe(held.as_secs_f64());
    }
}

pub(super) struct Waiting(Gauge);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.dec();
    }
}

pub(super) struct CountedAttempt(Option<Counter>);

impl CountedAttempt {
    /// Does not count it: no request of it left this process.
    pub(super) fn was_not_sent(mut self) {
        self.0 = None;
    }
}

impl Drop for CountedAttempt {
    fn drop(&mut self) {
        if let Some(attempts) = &self.0 {
            attempts.inc();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_the_ones_that_dashboards_ask_for() {
        let metrics = LockMetrics::default();
        metrics.granted(Duration::from_millis(2));
        metrics.released(ReleaseOutcome::Superseded, Duration::from_millis(3));
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            "lock_acquire_attempts_total 0",
            "lock_acquire_successes_total 1",
            "lock_acquire_timeouts_total 0",
            "lock_requests_total 0",
            "lock_acquire_seconds_count 1",
            "lock_held_seconds_count 1",
            "lock_renews_total 0",
            "lock_renew_failures_total 0",
            "lock_release_by_non_owner_total 1",
            "lock_release_by_non_owner_applied_total 0",
            "lock_leases_held 0",
            "lock_queue_length 0",
            "lock_current_token 0",
        ] {
            assert!(text.contains(&format!("\n{line}")), "{line} in\n{text}");
        }
    }
}
