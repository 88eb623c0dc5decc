//! The floor on etcd: two commits, one to take and one to give back.

use super::etcd_leader::leader;
use super::{Lock, Peer};
use crate::Trouble;
use async_trait::async_trait;
use etcd_client::Client;

pub struct EtcdPuts {
    pub members: Vec<String>,
}

#[async_trait]
impl Peer for EtcdPuts {
    fn name(&self) -> String {
        "two bare puts".to_owned()
    }

    async fn client(&self, key: &str) -> Result<Box<dyn Lock>, Trouble> {
        Ok(Box::new(Puts {
            client: leader(&self.members).await?,
            key: format!("bare/{key}"),
        }))
    }
}

struct Puts {
    client: Client,
    key: String,
}

#[async_trait]
impl Lock for Puts {
    async fn acquire(&mut self) -> Result<Option<u64>, Trouble> {
        self.client.put(self.key.as_str(), "held", None).await?;
        Ok(None)
    }

    async fn release(&mut self) -> Result<(), Trouble> {
        self.client.put(self.key.as_str(), "free", None).await?;
        Ok(())
    }
}
