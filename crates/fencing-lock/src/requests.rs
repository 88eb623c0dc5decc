use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use std::sync::Arc;

/// The number of requests sent to lock servers by all backends whose clients share one
/// [`LockMetrics`](super::LockMetrics).
///
/// It counts everything that a server has to read: tries, releases, renewals,
/// subscriptions, watches, and the requests that keep a session alive. It does not count
/// the requests that open a connection.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    of_backends: Arc<Mutex<Vec<Counter>>>,
}

impl Requests {
    pub fn get(&self) -> u64 {
        self.of_backends.lock().iter().map(Counter::get).sum()
    }

    /// Adds a backend. Several clients of one backend are counted once.
    pub(super) fn include(&self, backend: Counter) {
        let mut of_backends = self.of_backends.lock();
        let is_there = |known: &Counter| std::ptr::eq(known.inner(), backend.inner());
        if !of_backends.iter().any(is_there) {
            of_backends.push(backend);
        }
    }
}

impl Collector for Requests {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let sent = ConstCounter::new(self.get());
        let metric = encoder.encode_descriptor(
            "lock_requests",
            "Requests that were sent to the lock servers, for everything",
            None,
            sent.metric_type(),
        )?;
        sent.encode(metric)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_of_all_backends_and_counts_none_twice() {
        let requests = Requests::default();
        let (one, other) = (Counter::default(), Counter::default());
        requests.include(one.clone());
        requests.include(one.clone());
        requests.include(other.clone());
        one.inc_by(3);
        other.inc();
        assert_eq!(requests.get(), 4);
    }
}
