//! The floor of a hand-off: a list with one element. Who pops it holds it, and
//! pushes it back for whoever has waited longest. It is no lock: a holder that
//! dies takes it along.

use super::{Lock, Peer};
use crate::Trouble;
use async_trait::async_trait;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, RedisError, cmd};

pub struct Ring {
    pub node: String,
}

#[async_trait]
impl Peer for Ring {
    fn name(&self) -> String {
        "ring: BLPOP, push back".to_owned()
    }

    async fn prepare(&self, key: &str) -> Result<(), Trouble> {
        let mut connection = connection(&self.node).await?;
        push(key).exec_async(&mut connection).await?;
        Ok(())
    }

    async fn client(&self, key: &str) -> Result<Box<dyn Lock>, Trouble> {
        let mut pop = cmd("BLPOP");
        pop.arg(key).arg(0);
        Ok(Box::new(Place {
            connection: connection(&self.node).await?,
            pop,
            push: push(key),
        }))
    }
}

async fn connection(address: &str) -> Result<MultiplexedConnection, RedisError> {
    // Whoever waits in a BLPOP is not answered for a while.
    let config = AsyncConnectionConfig::new().set_response_timeout(None);
    let client = Client::open(format!("redis://{address}"))?;
    client
        .get_multiplexed_async_connection_with_config(&config)
        .await
}

fn push(key: &str) -> Cmd {
    let mut push = cmd("RPUSH");
    push.arg(key).arg("held");
    push
}

struct Place {
    connection: MultiplexedConnection,
    pop: Cmd,
    push: Cmd,
}

#[async_trait]
impl Lock for Place {
    async fn acquire(&mut self) -> Result<Option<u64>, Trouble> {
        self.pop.exec_async(&mut self.connection).await?;
        Ok(None)
    }

    async fn release(&mut self) -> Result<(), Trouble> {
        self.push.exec_async(&mut self.connection).await?;
        Ok(())
    }
}
