//! The counters of the resource, as Prometheus text.

use crate::model::{Fence, RowOutcome};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::fmt;
use std::time::Duration;

pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The name in the text; the encoder adds `_total` to the registered name.
pub(super) const STALE_REJECTIONS: &str = "resource_stale_token_rejections_total";

pub(super) struct Metrics {
    registry: Registry,
    accepted: Counter,
    duplicates: Counter,
    rejections: Counter,
    bad_requests: Counter,
    batches: Counter,
    commit_seconds: Histogram,
}

impl Metrics {
    pub fn new(fence: Fence) -> Metrics {
        let mut registry = Registry::default();
        let mut counter = |name: &str, help: &str| {
            let counter = Counter::default();
            registry.register(name, help, counter.clone());
            counter
        };
        let accepted = counter("resource_writes_accepted", "Writes that were applied");
        let duplicates = counter(
            "resource_writes_duplicate",
            "Writes that repeated the latest one and were not applied again",
        );
        let rejections = counter(
            STALE_REJECTIONS.trim_end_matches("_total"),
            "Writes refused with 409 because their token did not exceed the latest",
        );
        let bad_requests = counter(
            "resource_bad_requests",
            "Requests refused as malformed, too large or too slow",
        );
        let batches = counter("resource_commit_batches", "Batches written and synced");
        // The buckets range from 50 µs (memory) to 1.6 s (a failing disk).
        let commit_seconds = Histogram::new(exponential_buckets(0.000_05, 2.0, 16));
        registry.register(
            "resource_commit_seconds",
            "Time to write and sync one batch",
            commit_seconds.clone(),
        );
        let enabled: Gauge = Gauge::default();
        enabled.set((fence == Fence::On).into());
        registry.register(
            "resource_fence_enabled",
            "1 where tokens are compared, 0 where they are only logged",
            enabled,
        );
        Metrics {
            registry,
            accepted,
            duplicates,
            rejections,
            bad_requests,
            batches,
            commit_seconds,
        }
    }

    pub fn count(&self, outcome: RowOutcome) {
        match outcome {
            RowOutcome::Accepted => self.accepted.inc(),
            RowOutcome::Rejected => self.rejections.inc(),
            RowOutcome::Duplicate => self.duplicates.inc(),
        };
    }

    pub fn count_batch(&self, took: Duration) {
        self.batches.inc();
        self.commit_seconds.observe(took.as_secs_f64());
    }

    pub fn count_bad_request(&self) {
        self.bad_requests.inc();
    }

    pub fn encode(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}
