//! Our own Toxiproxy server, for users who have no other: the same API, with improvements
//! where users of the original complain.
//!
//! A request comes in at `http` and changes the `collection`, a `proxy` or its `toxics`.
//! Clients come in at `accept`; each is a `connection` with a `link` in each direction,
//! and a link passes the data it reads through its `chain`. The chain follows the
//! published toxics, and nobody waits for it.

mod accept;
mod access;
mod address;
mod alarm;
mod announced;
mod chain;
mod collection;
mod config;
mod connection;
mod go_json;
mod http;
mod link;
mod log;
mod luck;
mod metrics;
mod proxy;
mod refusal;
mod reply;
pub mod streams;
#[cfg(test)]
mod tests;
mod toxics;

pub use address::bind;
pub use config::{ConfigError, ConfiguredProxy, read_config};
pub use http::VERSION;
pub use log::LogLevel;

use crate::{NewProxy, Stream, Toxic};
use axum::http::StatusCode;
use bounded_io::serve;
use collection::Collection;
use metrics::Metrics;
use parking_lot::Mutex;
use refusal::Refusal;
use serde::Serialize;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// The time for requests under way to end once shutdown is requested.
const STOP_DEADLINE: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub struct Settings {
    /// Decides on toxicity, jitter and sizes; without a seed, a random one does.
    pub seed: Option<u64>,
    pub proxy_metrics: bool,
    pub runtime_metrics: bool,
    /// The time limit for connecting to an upstream.
    pub dial_timeout: Duration,
    pub log: LogLevel,
    /// The token that every request has to bring; without one, nothing is asked for.
    pub auth_token: Option<String>,
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
            auth_token: None,
            proxies: Vec::new(),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot start what the config asks for: {0}")]
    Config(String),
}

/// A server whose first proxies listen, ready to serve.
pub struct Opened {
    proxies: Arc<Collection>,
    metrics: Arc<Metrics>,
    auth_token: Option<String>,
    log: LogLevel,
}

/// The data that all proxies share.
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
    Ok(Opened {
        proxies,
        metrics,
        auth_token: settings.auth_token,
        log: settings.log,
    })
}

impl Opened {
    /// Serves until `shutdown` is ready, then closes every proxy and every
    /// connection.
    pub async fn serve(self, listener: TcpListener, shutdown: impl Future<Output = ()>) {
        let Opened {
            proxies,
            metrics,
            auth_token,
            log,
        } = self;
        access::warn_if_open(&listener, auth_token.as_deref(), log);
        let app = http::App {
            proxies: proxies.clone(),
            metrics,
        };
        let router = http::router(app, auth_token);
        let stopping = CancellationToken::new();
        let mut server = pin!(serve::serve(listener, router, stopping.clone()));
        tokio::select! {
            () = &mut server => return,
            () = shutdown => stopping.cancel(),
        }
        // A request that has not been answered by then is cut off.
        let _ = tokio::join!(proxies.stop(), timeout(STOP_DEADLINE, server));
        // A request that was still served may have created another proxy.
        proxies.stop().await;
    }
}
