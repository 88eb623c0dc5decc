//! One proxy: its description, and whether it listens.

use super::accept::{Accepting, accept_clients};
use super::address::resolve;
use super::connection::Route;
use super::toxics::Toxics;
use super::*;
use crate::proxy::Nothing;
use crate::{Proxy, ProxyChange};
use std::sync::atomic::AtomicU64;

pub struct ProxyServer {
    shared: Arc<Shared>,
    name: String,
    described: Mutex<Described>,
    /// Held while it starts or stops, so that one comes after the other.
    accepting: tokio::sync::Mutex<Option<Accepting>>,
    pub toxics: Arc<Toxics>,
    /// The number of clients over the whole life of the proxy.
    clients: Arc<AtomicU64>,
}

#[derive(Clone)]
struct Described {
    listen: String,
    upstream: String,
    enabled: bool,
}

impl ProxyServer {
    /// Makes a proxy that listens, unless it is to be disabled.
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

    pub fn show(&self) -> Proxy {
        let described = self.described.lock().clone();
        Proxy {
            name: self.name.clone(),
            listen: described.listen,
            upstream: described.upstream,
            enabled: described.enabled,
            logger: Nothing::default(),
            toxics: self.toxics.list(),
        }
    }

    /// Returns whether a proxy with these addresses would listen or lead elsewhere.
    /// Addresses are compared after they are resolved; a new one that cannot be is refused.
    pub async fn differs(&self, listen: &str, upstream: &str) -> Result<bool, Refusal> {
        let now = self.described.lock().clone();
        if now.listen == listen {
            return Ok(now.upstream != upstream);
        }
        let wanted = resolve(listen).await.map_err(Refusal::internal)?;
        Ok(now.upstream != upstream || resolve(&now.listen).await != Ok(wanted))
    }

    pub async fn start(&self) -> Result<(), Refusal> {
        let mut accepting = self.accepting.lock().await;
        match &*accepting {
            Some(_) => Ok(()),
            None => self.start_within(&mut accepting).await,
        }
    }

    /// Stops the proxy: once this returns, nobody can connect and nobody is connected.
    pub async fn stop(&self) {
        let mut accepting = self.accepting.lock().await;
        self.stop_within(&mut accepting).await;
    }

    pub async fn end(&self) {
        self.stop().await;
        self.forget_counts();
    }

    pub async fn update(&self, change: ProxyChange) -> Result<(), Refusal> {
        let mut accepting = self.accepting.lock().await;
        let now = self.described.lock().clone();
        let listen = change.listen.unwrap_or(now.listen);
        let upstream = change.upstream.unwrap_or(now.upstream);
        if self.differs(&listen, &upstream).await? {
            self.stop_within(&mut accepting).await;
            self.forget_counts();
            let mut described = self.described.lock();
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
        let listen = self.described.lock().listen.clone();
        let listener = bind(&listen).await.map_err(Refusal::internal)?;
        let address = listener.local_addr().map_err(Refusal::internal)?;
        let route = {
            let mut described = self.described.lock();
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
        self.described.lock().enabled = false;
        running.stop().await;
        self.shared
            .log
            .info(format_args!("proxy {} is closed", self.name));
    }

    fn accept(&self, listener: TcpListener, route: Route) -> Accepting {
        let (clients, log) = (self.clients.clone(), self.shared.log);
        Accepting::start(|stop| accept_clients(listener, route, clients, log, stop))
    }

    fn route(&self, described: &Described) -> Route {
        let (shared, name) = (&self.shared, &self.name);
        let (listen, upstream) = (&described.listen, &described.upstream);
        Route {
            proxy: name.clone(),
            upstream: upstream.clone(),
            dial_timeout: shared.dial_timeout,
            toxics: self.toxics.clone(),
            seed: shared.seed,
            counted: Stream::ALL.map(|it| shared.metrics.of(it, name, listen, upstream)),
        }
    }

    fn forget_counts(&self) {
        let now = self.described.lock();
        let metrics = &self.shared.metrics;
        metrics.forget(&self.name, &now.listen, &now.upstream);
    }
}
