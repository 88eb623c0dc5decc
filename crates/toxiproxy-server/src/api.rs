use super::client::ToxiproxyClient;
use super::error::ToxiproxyError;
use super::proxy::{NewProxy, Proxy, ProxyChange};
use super::toxic::Toxic;
use async_trait::async_trait;

/// What a harness asks of a Toxiproxy, be it a server or in this process.
#[async_trait]
pub trait ToxiproxyApi: Send + Sync {
    async fn version(&self) -> Result<String, ToxiproxyError>;
    async fn populate(&self, proxies: &[NewProxy]) -> Result<Vec<Proxy>, ToxiproxyError>;
    async fn proxy(&self, name: &str) -> Result<Proxy, ToxiproxyError>;
    async fn update(&self, name: &str, change: &ProxyChange) -> Result<Proxy, ToxiproxyError>;
    async fn add_toxic(&self, proxy: &str, toxic: &Toxic) -> Result<Toxic, ToxiproxyError>;
    async fn remove_toxic(&self, proxy: &str, name: &str) -> Result<(), ToxiproxyError>;
}

#[async_trait]
impl ToxiproxyApi for ToxiproxyClient {
    async fn version(&self) -> Result<String, ToxiproxyError> {
        self.version().await
    }

    async fn populate(&self, proxies: &[NewProxy]) -> Result<Vec<Proxy>, ToxiproxyError> {
        self.populate(proxies).await
    }

    async fn proxy(&self, name: &str) -> Result<Proxy, ToxiproxyError> {
        self.proxy(name).await
    }

    async fn update(&self, name: &str, change: &ProxyChange) -> Result<Proxy, ToxiproxyError> {
        self.update(name, change).await
    }

    async fn add_toxic(&self, proxy: &str, toxic: &Toxic) -> Result<Toxic, ToxiproxyError> {
        self.add_toxic(proxy, toxic).await
    }

    async fn remove_toxic(&self, proxy: &str, name: &str) -> Result<(), ToxiproxyError> {
        self.remove_toxic(proxy, name).await
    }
}
