//! A Toxiproxy server of our own, for whoever has no other at hand: the same
//! API, and where the original's users complain, better.
//!
//! A request comes in at `http` and changes the `collection`, a `proxy` or its
//! `toxics`. Clients come in at `accept`; each is a `connection` with a `link`
//! each way, and a link passes what it reads through its `chain`. The chain
//! follows the toxics as they are published, and nobody waits for it.

mod accept;
mod address;
mod chain;
mod collection;
mod config;
mod connection;
mod http;
mod link;
mod log;
mod luck;
mod metrics;
mod proxy;
mod refusal;
mod reply;
#[cfg(test)]
mod tests;
mod toxics;

pub use address::bind;
pub use config::{ConfigError, ConfiguredProxy, read_config};
pub use http::VERSION;
pub use log::LogLevel;

use crate::serve;
use collection::Collection;
use metrics::Metrics;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How long requests under way may take to end once shutdown is asked for.
const STOP_DEADLINE: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub struct Settings {
    /// Decides on toxicity, jitter and sizes; without one, chance does.
    pub seed: Option<u64>,
    pub proxy_metrics: bool,
    pub runtime_metrics: bool,
    /// How long an upstream may take to accept a connection.
    pub dial_timeout: Duration,
    pub log: LogLevel,
    /// What is there from the beginning.
    pub proxies: Vec<ConfiguredProxy>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            seed: None,
            proxy_metrics: false,
            runtime_metrics: false,
            dial_timeout: Duration::from_secs(10),
            log: LogLevel::default(),
            proxies: Vec::new(),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot start what the config asks for: {0}")]
    Config(String),
}

/// A server whose first proxies listen: it is ready to be served.
pub struct Opened {
    proxies: Arc<Collection>,
    metrics: Arc<Metrics>,
}

/// What all proxies need to know.
struct Shared {
    seed: u64,
    dial_timeout: Duration,
    metrics: Arc<Metrics>,
    log: LogLevel,
}

pub async fn open(settings: Settings) -> Result<Opened, ServeError> {
    let seed = settings.seed.unwrap_or_else(|| fastrand::u64(..));
    settings.log.info(format_args!("the seed is {seed}"));
    let metrics = Metrics::new(settings.proxy_metrics, settings.runtime_metrics);
    let metrics = Arc::new(metrics);
    let proxies = Collection::new(Arc::new(Shared {
        seed,
        dial_timeout: settings.dial_timeout,
        metrics: metrics.clone(),
        log: settings.log,
    }));
    let configured = proxies.configure(settings.proxies).await;
    configured.map_err(|refusal| ServeError::Config(refusal.message))?;
    let proxies = Arc::new(proxies);
    Ok(Opened { proxies, metrics })
}

impl Opened {
    /// Serves until `shutdown` is ready, then closes every proxy and every
    /// connection.
    pub async fn serve(self, listener: TcpListener, shutdown: impl Future<Output = ()>) {
        let Opened { proxies, metrics } = self;
        let router = http::router(http::App {
            proxies: proxies.clone(),
            metrics,
        });
        let stopping = CancellationToken::new();
        let mut server = pin!(serve::serve(listener, router, stopping.clone()));
        tokio::select! {
            () = &mut server => return,
            () = shutdown => stopping.cancel(),
        }
        // Who has not been answered by then is cut off.
        let _ = tokio::join!(proxies.stop(), timeout(STOP_DEADLINE, server));
        // Whoever was still served may have brought another one about.
        proxies.stop().await;
    }
}
