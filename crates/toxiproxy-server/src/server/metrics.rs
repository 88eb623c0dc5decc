//! The counts, as Prometheus text.

use crate::Stream;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::fmt;

pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    // In the order of the original, which is alphabetical.
    direction: &'static str,
    listener: String,
    proxy: String,
    upstream: String,
}

fn labels(stream: Stream, proxy: &str, listener: &str, upstream: &str) -> Labels {
    Labels {
        direction: stream.name(),
        listener: listener.to_owned(),
        proxy: proxy.to_owned(),
        upstream: upstream.to_owned(),
    }
}

/// The byte counts of one direction of a connection.
#[derive(Clone, Default)]
pub struct Counted {
    received: Counter,
    sent: Counter,
}

impl Counted {
    pub fn received(&self, bytes: usize) {
        self.received.inc_by(bytes as u64);
    }

    pub fn sent(&self, bytes: usize) {
        self.sent.inc_by(bytes as u64);
    }
}

pub struct Metrics {
    proxy_metrics: bool,
    runtime_metrics: bool,
    received: Family<Labels, Counter>,
    sent: Family<Labels, Counter>,
}

impl Metrics {
    pub fn new(proxy_metrics: bool, runtime_metrics: bool) -> Metrics {
        Metrics {
            proxy_metrics,
            runtime_metrics,
            received: Family::default(),
            sent: Family::default(),
        }
    }

    pub fn are_wanted(&self) -> bool {
        self.proxy_metrics || self.runtime_metrics
    }

    /// Returns the counters of a proxy. Counters that nobody will read are not kept.
    pub fn of(&self, stream: Stream, proxy: &str, listener: &str, upstream: &str) -> Counted {
        if !self.proxy_metrics {
            return Counted::default();
        }
        let labels = labels(stream, proxy, listener, upstream);
        Counted {
            received: self.received.get_or_create(&labels).clone(),
            sent: self.sent.get_or_create(&labels).clone(),
        }
    }

    /// Removes the counters of a proxy that is gone, and will not be asked about again.
    pub fn forget(&self, proxy: &str, listener: &str, upstream: &str) {
        for stream in Stream::ALL {
            let labels = labels(stream, proxy, listener, upstream);
            self.received.remove(&labels);
            self.sent.remove(&labels);
        }
    }

    pub fn encode(&self) -> Result<String, fmt::Error> {
        let mut registry = Registry::default();
        if self.proxy_metrics {
            registry.register(
                "toxiproxy_proxy_received_bytes",
                "Bytes that came in, by direction",
                self.received.clone(),
            );
            registry.register(
                "toxiproxy_proxy_sent_bytes",
                "Bytes that went out, by direction",
                self.sent.clone(),
            );
        }
        if self.runtime_metrics {
            let tasks: Gauge = Gauge::default();
            let alive = tokio::runtime::Handle::current()
                .metrics()
                .num_alive_tasks();
            tasks.set(i64::try_from(alive).unwrap_or(i64::MAX));
            registry.register("tokio_alive_tasks", "Tasks of the runtime", tasks);
            if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
                let files: Gauge = Gauge::default();
                files.set(i64::try_from(open.count()).unwrap_or(i64::MAX));
                registry.register("process_open_fds", "Open file descriptors", files);
            }
        }
        let mut text = String::new();
        encode(&mut text, &registry)?;
        Ok(text)
    }
}
