//! Connections to a Redis that limit the length of answers.
//!
//! redis-rs has no limit: it takes an answer of any length into memory, twice.

use super::frames::Frames;
use crate::Env;
use crate::bounded::Bounded;
use crate::env::REAL;
use crate::task::Task;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ConnectionAddr, RedisResult};
use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// A connection that closes when its last clone is dropped.
#[derive(Clone)]
pub struct RedisConnection {
    connection: MultiplexedConnection,
    _driver: Option<Arc<Task>>,
}

impl Deref for RedisConnection {
    type Target = MultiplexedConnection;

    fn deref(&self) -> &MultiplexedConnection {
        &self.connection
    }
}

impl DerefMut for RedisConnection {
    fn deref_mut(&mut self) -> &mut MultiplexedConnection {
        &mut self.connection
    }
}

/// Connects and authenticates; `within` is the time limit.
pub async fn connect(
    client: &Client,
    config: AsyncConnectionConfig,
    within: Duration,
) -> RedisResult<RedisConnection> {
    connect_in(&REAL, client, config, within).await
}

/// Does the same in surroundings that may be simulated.
pub async fn connect_in(
    env: &Env,
    client: &Client,
    config: AsyncConnectionConfig,
    within: Duration,
) -> RedisResult<RedisConnection> {
    let connecting = async {
        let Some(stream) = dial(env, client).await? else {
            let connection = client.get_multiplexed_async_connection_with_config(&config);
            return Ok(RedisConnection {
                connection: connection.await?,
                _driver: None,
            });
        };
        let settings = client.get_connection_info().redis_settings();
        let (connection, driver) =
            MultiplexedConnection::new_with_config(settings, stream, config).await?;
        Ok(RedisConnection {
            connection,
            _driver: Some(Arc::new(env.spawn(driver))),
        })
    };
    let too_late = |_| Err(io::Error::from(io::ErrorKind::TimedOut).into());
    timeout(within, connecting).await.unwrap_or_else(too_late)
}

pub async fn subscribe(client: &Client) -> RedisResult<redis::aio::PubSub> {
    match dial(&REAL, client).await? {
        Some(stream) => {
            let settings = client.get_connection_info().redis_settings();
            redis::aio::PubSub::new(settings, stream).await
        }
        None => client.get_async_pubsub().await,
    }
}

/// Connects with a bound. Returns `None` if the address is not plain TCP: only somebody
/// who trusts a server names its socket.
async fn dial(env: &Env, client: &Client) -> io::Result<Option<Bounded<Frames>>> {
    let ConnectionAddr::Tcp(host, port) = client.get_connection_info().addr() else {
        return Ok(None);
    };
    Ok(Some(Bounded::new(env.dial(host, *port).await?)))
}
