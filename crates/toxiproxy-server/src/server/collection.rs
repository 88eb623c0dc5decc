//! All proxies, and the operations on many of them at once.

use super::proxy::ProxyServer;
use super::*;
use futures_util::future::join_all;
use std::collections::BTreeMap;

pub struct Collection {
    shared: Arc<Shared>,
    proxies: Mutex<BTreeMap<String, Arc<ProxyServer>>>,
    /// Held while proxies are added or removed. Reading does not need it.
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
        self.proxies.lock().clone()
    }

    pub fn get(&self, name: &str) -> Result<Arc<ProxyServer>, Refusal> {
        let found = self.proxies.lock().get(name).cloned();
        found.ok_or_else(Refusal::no_proxy)
    }

    pub async fn create(&self, new: NewProxy) -> Result<Arc<ProxyServer>, Refusal> {
        check(&new, "")?;
        let _alone = self.coming_and_going.lock().await;
        if self.proxies.lock().contains_key(&new.name) {
            return Err(Refusal::proxy_exists());
        }
        self.open(new).await
    }

    pub async fn delete(&self, name: &str) -> Result<(), Refusal> {
        let _alone = self.coming_and_going.lock().await;
        let removed = self.proxies.lock().remove(name);
        removed.ok_or_else(Refusal::no_proxy)?.end().await;
        Ok(())
    }

    /// Returns the result for each in turn, up to the first that failed. It does nothing
    /// if one of them is invalid.
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

    /// Creates proxies and toxics as if they had been requested one after another.
    pub async fn configure(&self, configured: Vec<ConfiguredProxy>) -> Result<(), Refusal> {
        for ConfiguredProxy { proxy, toxics } in configured {
            let proxy = self.create(proxy).await?;
            for toxic in toxics {
                proxy.toxics.add(toxic)?;
            }
        }
        Ok(())
    }

    /// Removes all toxics and enables every proxy that can be, and then returns the first
    /// error.
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
        let proxies = std::mem::take(&mut *self.proxies.lock());
        join_all(proxies.values().map(|proxy| proxy.stop())).await;
    }

    async fn keep_or_replace(&self, new: NewProxy) -> Result<Arc<ProxyServer>, Refusal> {
        let old = self.proxies.lock().get(&new.name).cloned();
        if let Some(old) = old {
            if !old.differs(&new.listen, &new.upstream).await? {
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
        self.proxies.lock().insert(name, proxy.clone());
        Ok(proxy)
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
