//! Proxies without sockets, for a simulation: somebody else accepts the clients and dials the
//! upstreams. Toxics do to a stream here what they do to a connection of the server.

use super::link::{Link, Reset};
use super::luck::Luck;
use super::metrics::Counted;
use super::toxics::Toxics;
use super::*;
use crate::proxy::Nothing;
use crate::{Proxy, ProxyChange, ToxiproxyApi, ToxiproxyError};
use async_trait::async_trait;
use futures_util::future::try_join;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::io::{AsyncRead, AsyncWrite, split};

/// A stream that can be closed while somebody else reads and writes it.
pub trait Closable: AsyncRead + AsyncWrite + Unpin + Send {
    type Closer: Closer;

    fn closer(&self) -> Self::Closer;
}

pub trait Closer: Send + Sync {
    /// Closes the stream in both directions.
    fn close(&self);
    /// Drops what is under way; both sides see an error.
    fn reset(&self);
}

/// A Toxiproxy in this process.
pub struct StreamProxies {
    seed: u64,
    proxies: Mutex<BTreeMap<String, Arc<StreamProxy>>>,
}

/// One proxy between streams.
pub struct StreamProxy {
    name: String,
    seed: u64,
    described: Mutex<Described>,
    toxics: Toxics,
    /// The number of clients over the whole life of the proxy.
    clients: AtomicU64,
}

struct Described {
    listen: String,
    upstream: String,
    enabled: bool,
    /// Ends the connections.
    stop: CancellationToken,
}

impl StreamProxies {
    /// Makes a Toxiproxy without proxies. The seed decides on toxicity, jitter and sizes.
    pub fn new(seed: u64) -> StreamProxies {
        StreamProxies {
            seed,
            proxies: Mutex::default(),
        }
    }

    /// Returns the proxy that listens at an address, enabled or not.
    pub fn at(&self, listen: &str) -> Option<Arc<StreamProxy>> {
        let proxies = self.proxies.lock();
        let mut all = proxies.values();
        let found = all.find(|proxy| proxy.described.lock().listen == listen);
        found.cloned()
    }

    fn get(&self, call: &str, name: &str) -> Result<Arc<StreamProxy>, ToxiproxyError> {
        let found = self.proxies.lock().get(name).cloned();
        found.ok_or_else(|| refused(call, Refusal::no_proxy()))
    }
}

#[async_trait]
impl ToxiproxyApi for StreamProxies {
    async fn version(&self) -> Result<String, ToxiproxyError> {
        Ok(VERSION.to_owned())
    }

    async fn populate(&self, new: &[NewProxy]) -> Result<Vec<Proxy>, ToxiproxyError> {
        let mut proxies = self.proxies.lock();
        let made = new.iter().map(|new| {
            let proxy = Arc::new(StreamProxy::new(self.seed, new));
            let shown = proxy.show();
            proxies.insert(new.name.clone(), proxy);
            shown
        });
        Ok(made.collect())
    }

    async fn proxy(&self, name: &str) -> Result<Proxy, ToxiproxyError> {
        Ok(self.get("GET /proxies", name)?.show())
    }

    async fn update(&self, name: &str, change: &ProxyChange) -> Result<Proxy, ToxiproxyError> {
        let proxy = self.get("POST /proxies", name)?;
        proxy.update(change);
        Ok(proxy.show())
    }

    async fn add_toxic(&self, proxy: &str, toxic: &Toxic) -> Result<Toxic, ToxiproxyError> {
        let call = "POST /toxics";
        let added = self.get(call, proxy)?.toxics.add(toxic.clone());
        added.map_err(|refusal| refused(call, refusal))
    }

    async fn remove_toxic(&self, proxy: &str, name: &str) -> Result<(), ToxiproxyError> {
        let call = "DELETE /toxics";
        let removed = self.get(call, proxy)?.toxics.remove(name);
        removed.map_err(|refusal| refused(call, refusal))
    }
}

impl StreamProxy {
    fn new(seed: u64, new: &NewProxy) -> StreamProxy {
        StreamProxy {
            name: new.name.clone(),
            seed,
            described: Mutex::new(Described {
                listen: new.listen.clone(),
                upstream: new.upstream.clone(),
                enabled: new.enabled,
                stop: CancellationToken::new(),
            }),
            toxics: Toxics::new(),
            clients: AtomicU64::new(0),
        }
    }

    pub fn is_enabled(&self) -> bool {
        self.described.lock().enabled
    }

    fn show(&self) -> Proxy {
        let described = self.described.lock();
        Proxy {
            name: self.name.clone(),
            listen: described.listen.clone(),
            upstream: described.upstream.clone(),
            enabled: described.enabled,
            logger: Nothing::default(),
            toxics: self.toxics.list(),
        }
    }

    fn update(&self, change: &ProxyChange) {
        let mut described = self.described.lock();
        let listen = change.listen.as_ref().unwrap_or(&described.listen).clone();
        let upstream = change.upstream.as_ref();
        let upstream = upstream.unwrap_or(&described.upstream).clone();
        let enabled = change.enabled.unwrap_or(described.enabled);
        let leads_elsewhere = listen != described.listen || upstream != described.upstream;
        if leads_elsewhere || !enabled {
            described.stop.cancel();
            described.stop = CancellationToken::new();
        }
        described.listen = listen;
        described.upstream = upstream;
        described.enabled = enabled;
    }

    /// Carries a client's data until both directions have ended, or the proxy is stopped. If the
    /// upstream cannot be reached, the client is closed, and the error says why.
    pub async fn carry<S: Closable, F: Future<Output = io::Result<S>>>(
        &self,
        client: S,
        dial: impl FnOnce(String) -> F,
    ) -> io::Result<()> {
        let (upstream, stop) = {
            let described = self.described.lock();
            (described.upstream.clone(), described.stop.clone())
        };
        let number = self.clients.fetch_add(1, Ordering::Relaxed) + 1;
        tokio::select! {
            biased;
            () = stop.cancelled() => Ok(()),
            carried = self.carry_to(client, number, dial(upstream)) => carried,
        }
    }

    async fn carry_to<S: Closable>(
        &self,
        client: S,
        number: u64,
        dialled: impl Future<Output = io::Result<S>>,
    ) -> io::Result<()> {
        // Subscribe before the dial: a toxic that is added in the meantime is a change for the
        // links.
        let [toxics_up, toxics_down] = Stream::ALL.map(|stream| self.toxics.subscribe(stream));
        let upstream = dialled.await?;
        let luck = |stream| Luck::new(self.seed, &self.name, number, stream);
        let closers = [client.closer(), upstream.closer()];
        let [close_client, close_upstream] = &closers;
        let heard = AtomicBool::new(false);
        let (mut from_client, mut to_client) = split(client);
        let (mut from_upstream, mut to_upstream) = split(upstream);
        let up = Link::new(
            &mut from_client,
            &mut to_upstream,
            toxics_up,
            luck(Stream::Upstream),
            Counted::default(),
            &heard,
        );
        let down = Link::new(
            &mut from_upstream,
            &mut to_client,
            toxics_down,
            luck(Stream::Downstream),
            Counted::default(),
            &heard,
        );
        let up = async {
            up.with_coarse_alarm().run().await?;
            close_upstream.close();
            Ok(())
        };
        let down = async {
            down.with_coarse_alarm().run().await?;
            close_client.close();
            Ok(())
        };
        if let Err(Reset) = try_join(up, down).await {
            closers.iter().for_each(Closer::reset);
        }
        Ok(())
    }
}

fn refused(call: &str, refusal: Refusal) -> ToxiproxyError {
    ToxiproxyError::Refused {
        call: call.to_owned(),
        status: refusal.status.as_u16(),
        message: refusal.message,
    }
}
