//! The lock that the etcd server itself offers, called as its client does.

use super::etcd_leader::leader;
use super::{Lock, Peer, TTL};
use crate::Trouble;
use async_trait::async_trait;
use etcd_client::{Client, LockOptions};
use tokio_util::task::AbortOnDropHandle;

pub struct EtcdLockApi {
    pub members: Vec<String>,
    /// Whether each client has one lease for all its locks; otherwise the
    /// server makes one for each call, a commit more.
    pub own_lease: bool,
}

#[async_trait]
impl Peer for EtcdLockApi {
    fn name(&self) -> String {
        match self.own_lease {
            true => "etcd's Lock API, lease of its own".to_owned(),
            false => "etcd's Lock API, no lease given".to_owned(),
        }
    }

    async fn client(&self, key: &str) -> Result<Box<dyn Lock>, Trouble> {
        let mut client = leader(&self.members).await?;
        let mut keep_alive = None;
        let mut lease = None;
        if self.own_lease {
            let id = client.lease_grant(TTL.as_secs() as i64, None).await?.id();
            let (mut keeper, mut answers) = client.lease_keep_alive(id).await?;
            keep_alive = Some(AbortOnDropHandle::new(tokio::spawn(async move {
                while keeper.keep_alive().await.is_ok() && answers.message().await.is_ok() {
                    tokio::time::sleep(TTL / 3).await;
                }
            })));
            lease = Some(id);
        }
        Ok(Box::new(Api {
            client,
            name: format!("api/{key}"),
            lease,
            held: Vec::new(),
            _keep_alive: keep_alive,
        }))
    }
}

struct Api {
    client: Client,
    name: String,
    lease: Option<i64>,
    held: Vec<u8>,
    _keep_alive: Option<AbortOnDropHandle<()>>,
}

#[async_trait]
impl Lock for Api {
    async fn acquire(&mut self) -> Result<Option<u64>, Trouble> {
        let options = self.lease.map(|id| LockOptions::new().with_lease(id));
        let answer = self.client.lock(self.name.as_str(), options).await?;
        self.held = answer.key().to_vec();
        Ok(None)
    }

    async fn release(&mut self) -> Result<(), Trouble> {
        let held = std::mem::take(&mut self.held);
        self.client.unlock(held).await?;
        Ok(())
    }
}
