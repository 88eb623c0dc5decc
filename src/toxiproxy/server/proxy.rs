//! One proxy: what it is, and whether it listens.

use super::Shared;
use super::accept::{Accepting, accept_clients};
use super::address::{bind, resolve};
use super::connection::Route;
use super::refusal::Refusal;
use super::toxics::Toxics;
use crate::toxiproxy::{NewProxy, ProxyChange, Stream, Toxic};
use serde::Serialize;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::TcpListener;

pub struct ProxyServer {
    shared: Arc<Shared>,
    name: String,
    described: Mutex<Described>,
    /// Held while it starts or stops, so that one comes after the other.
    accepting: tokio::sync::Mutex<Option<Accepting>>,
    pub toxics: Arc<Toxics>,
    /// Clients are numbered over the whole life of the proxy.
    clients: Arc<AtomicU64>,
}

#[derive(Clone)]
struct Described {
    listen: String,
    upstream: String,
    enabled: bool,
}

/// A proxy in an answer, with the fields of the original in its order.
#[derive(Serialize)]
pub struct Shown {
    name: String,
    listen: String,
    upstream: String,
    enabled: bool,
    /// The original lets its logger show, and somebody may look for it.
    #[serde(rename = "Logger")]
    logger: Nothing,
    toxics: Vec<Toxic>,
}

#[derive(Serialize)]
struct Nothing {}

impl ProxyServer {
    /// Listens, unless it is to be disabled.
    pub async fn open(shared: Arc<Shared>, new: NewProxy) -> Result<ProxyServer, Refusal> {
        let proxy = ProxyServer {
            shared,
            name: new.name,
            described: Mutex::new(Described {
                listen: new.listen,
                upstream: new.upstream,
                enabled: false,
            }),
            accepting: tokio::sync::Mutex::new(None),
            toxics: Arc::new(Toxics::new()),
            clients: Arc::default(),
        };
        if new.enabled {
            proxy.start().await?;
        }
        Ok(proxy)
    }

    pub fn show(&self) -> Shown {
        let Described {
            listen,
            upstream,
            enabled,
        } = self.described().clone();
        Shown {
            name: self.name.clone(),
            listen,
            upstream,
            enabled,
            logger: Nothing {},
            toxics: self.toxics.list(),
        }
    }

    /// Whether a proxy of this kind would listen or lead elsewhere. Addresses
    /// are compared as they resolve; what does not resolve, as it is written.
    pub async fn differs(&self, listen: &str, upstream: &str) -> bool {
        let now = self.described().clone();
        if now.upstream != upstream {
            return true;
        }
        if now.listen == listen {
            return false;
        }
        match (resolve(&now.listen).await, resolve(listen).await) {
            (Ok(now), Ok(wanted)) => now != wanted,
            _ => true,
        }
    }

    pub async fn start(&self) -> Result<(), Refusal> {
        let mut accepting = self.accepting.lock().await;
        match &*accepting {
            Some(_) => Ok(()),
            None => self.start_within(&mut accepting).await,
        }
    }

    /// Nobody can connect and nobody is connected once this returns.
    pub async fn stop(&self) {
        let mut accepting = self.accepting.lock().await;
        self.stop_within(&mut accepting).await;
    }

    /// It stops for good.
    pub async fn end(&self) {
        self.stop().await;
        self.forget_counts();
    }

    pub async fn update(&self, change: ProxyChange) -> Result<(), Refusal> {
        let mut accepting = self.accepting.lock().await;
        let now = self.described().clone();
        let listen = change.listen.unwrap_or(now.listen);
        let upstream = change.upstream.unwrap_or(now.upstream);
        if self.differs(&listen, &upstream).await {
            self.stop_within(&mut accepting).await;
            self.forget_counts();
            let mut described = self.described();
            described.listen = listen;
            described.upstream = upstream;
        }
        match (change.enabled.unwrap_or(now.enabled), accepting.is_some()) {
            (true, false) => self.start_within(&mut accepting).await,
            (false, true) => {
                self.stop_within(&mut accepting).await;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    async fn start_within(&self, accepting: &mut Option<Accepting>) -> Result<(), Refusal> {
        let listen = self.described().listen.clone();
        let listener = bind(&listen).await.map_err(Refusal::internal)?;
        let address = listener.local_addr().map_err(Refusal::internal)?;
        let route = {
            let mut described = self.described();
            described.listen = address.to_string();
            described.enabled = true;
            self.route(&described)
        };
        let log = self.shared.log;
        log.info(format_args!(
            "proxy {} listens on {address} for {}",
            self.name, route.upstream
        ));
        *accepting = Some(self.accept(listener, route));
        Ok(())
    }

    async fn stop_within(&self, accepting: &mut Option<Accepting>) {
        let Some(running) = accepting.take() else {
            return;
        };
        self.described().enabled = false;
        running.stop().await;
        let log = self.shared.log;
        log.info(format_args!("proxy {} is closed", self.name));
    }

    fn accept(&self, listener: TcpListener, route: Route) -> Accepting {
        let (clients, log) = (self.clients.clone(), self.shared.log);
        Accepting::start(|stop| accept_clients(listener, route, clients, log, stop))
    }

    fn route(&self, described: &Described) -> Route {
        let shared = &self.shared;
        let Described {
            listen, upstream, ..
        } = described;
        Route {
            proxy: self.name.clone(),
            upstream: upstream.clone(),
            dial_timeout: shared.dial_timeout,
            toxics: self.toxics.clone(),
            seed: shared.seed,
            counted: Stream::ALL
                .map(|stream| shared.metrics.of(stream, &self.name, listen, upstream)),
        }
    }

    fn forget_counts(&self) {
        let Described {
            listen, upstream, ..
        } = &*self.described();
        let metrics = &self.shared.metrics;
        metrics.forget(&self.name, listen, upstream);
    }

    fn described(&self) -> MutexGuard<'_, Described> {
        self.described
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
