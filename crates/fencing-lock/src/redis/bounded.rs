//! Connections to a Redis that limit the length of answers.
//!
//! redis-rs has no limit: it takes an answer of any length into memory, twice. So this
//! module checks the bytes before redis-rs reads them.

use super::frames::Frames;
use crate::Env;
use crate::env::Dialed;
#[cfg(feature = "servers")]
use crate::env::REAL;
use crate::task::Task;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ConnectionAddr, RedisResult};
use std::io::{self, IoSlice};
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
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
#[cfg(feature = "servers")]
pub async fn connect(
    client: &Client,
    config: AsyncConnectionConfig,
    within: Duration,
) -> RedisResult<RedisConnection> {
    connect_in(&REAL, client, config, within).await
}

pub(crate) async fn connect_in(
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

#[cfg(feature = "servers")]
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
async fn dial(env: &Env, client: &Client) -> io::Result<Option<Bounded>> {
    let ConnectionAddr::Tcp(host, port) = client.get_connection_info().addr() else {
        return match env.world() {
            None => Ok(None),
            Some(_) => Err(io::ErrorKind::Unsupported.into()),
        };
    };
    let stream = env.dial(host, *port).await?;
    let frames = Frames::default();
    Ok(Some(Bounded { stream, frames }))
}

struct Bounded {
    stream: Dialed,
    frames: Frames,
}

impl AsyncRead for Bounded {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buffer))?;
        Poll::Ready(this.frames.feed(&buffer.filled()[before..]))
    }
}

impl AsyncWrite for Bounded {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
