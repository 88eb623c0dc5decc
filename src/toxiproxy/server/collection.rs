//! All proxies, and what is done to many of them at once.

use super::Shared;
use super::config::ConfiguredProxy;
use super::proxy::ProxyServer;
use super::refusal::Refusal;
use crate::toxiproxy::NewProxy;
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub struct Collection {
    shared: Arc<Shared>,
    proxies: Mutex<BTreeMap<String, Arc<ProxyServer>>>,
    /// Held while proxies come and go. Whoever only looks does not need it.
    coming_and_going: tokio::sync::Mutex<()>,
}

impl Collection {
    pub fn new(shared: Arc<Shared>) -> Collection {
        Collection {
            shared,
            proxies: Mutex::default(),
            coming_and_going: tokio::sync::Mutex::new(()),
        }
    }

    pub fn all(&self) -> BTreeMap<String, Arc<ProxyServer>> {
        self.proxies().clone()
    }

    pub fn get(&self, name: &str) -> Result<Arc<ProxyServer>, Refusal> {
        let found = self.proxies().get(name).cloned();
        found.ok_or_else(Refusal::no_proxy)
    }

    pub async fn create(&self, new: NewProxy) -> Result<Arc<ProxyServer>, Refusal> {
        check(&new, "")?;
        let _alone = self.coming_and_going.lock().await;
        if self.proxies().contains_key(&new.name) {
            return Err(Refusal::proxy_exists());
        }
        self.open(new).await
    }

    pub async fn delete(&self, name: &str) -> Result<(), Refusal> {
        let _alone = self.coming_and_going.lock().await;
        let removed = self.proxies().remove(name);
        removed.ok_or_else(Refusal::no_proxy)?.end().await;
        Ok(())
    }

    /// Says what came of each in turn, up to the first that failed; nothing is
    /// done where one of them cannot be right.
    pub async fn populate(
        &self,
        new: Vec<NewProxy>,
    ) -> (Vec<Arc<ProxyServer>>, Result<(), Refusal>) {
        for (at, new) in new.iter().enumerate() {
            if let Err(refusal) = check(new, &format!(" at proxy {}", at + 1)) {
                return (Vec::new(), Err(refusal));
            }
        }
        let _alone = self.coming_and_going.lock().await;
        let mut populated = Vec::new();
        for new in new {
            match self.keep_or_replace(new).await {
                Ok(proxy) => populated.push(proxy),
                Err(refusal) => return (populated, Err(refusal)),
            }
        }
        (populated, Ok(()))
    }

    /// As if they had been asked for one after another.
    pub async fn configure(&self, configured: Vec<ConfiguredProxy>) -> Result<(), Refusal> {
        for ConfiguredProxy { proxy, toxics } in configured {
            let proxy = self.create(proxy).await?;
            for toxic in toxics {
                proxy.toxics.add(toxic)?;
            }
        }
        Ok(())
    }

    /// Heals everything that can be, and then tells what could not.
    pub async fn reset(&self) -> Result<(), Refusal> {
        let mut result = Ok(());
        for proxy in self.all().into_values() {
            proxy.toxics.clear();
            result = result.and(proxy.start().await);
        }
        result
    }

    pub async fn stop(&self) {
        let _alone = self.coming_and_going.lock().await;
        let proxies = std::mem::take(&mut *self.proxies());
        join_all(proxies.values().map(|proxy| proxy.stop())).await;
    }

    async fn keep_or_replace(&self, new: NewProxy) -> Result<Arc<ProxyServer>, Refusal> {
        let old = self.proxies().get(&new.name).cloned();
        if let Some(old) = old {
            if !old.differs(&new.listen, &new.upstream).await {
                return Ok(old);
            }
            // The new one may want the same port.
            old.end().await;
        }
        self.open(new).await
    }

    async fn open(&self, new: NewProxy) -> Result<Arc<ProxyServer>, Refusal> {
        let name = new.name.clone();
        let proxy = ProxyServer::open(self.shared.clone(), new).await?;
        let proxy = Arc::new(proxy);
        self.proxies().insert(name, proxy.clone());
        Ok(proxy)
    }

    fn proxies(&self) -> MutexGuard<'_, BTreeMap<String, Arc<ProxyServer>>> {
        self.proxies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn check(new: &NewProxy, place: &str) -> Result<(), Refusal> {
    for (field, value) in [("name", &new.name), ("upstream", &new.upstream)] {
        if value.is_empty() {
            return Err(Refusal::missing(&format!("{field}{place}")));
        }
    }
    Refusal::unless_short(&new.name)
}
