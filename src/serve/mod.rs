//! How every listener of ours serves HTTP: with a bound on everything that a client
//! decides on.
//!
//! axum's own loop takes any number of connections and waits for a request without
//! end. Here the head of a request has a deadline and a size, and there are only so
//! many connections: a new one takes the place of the one that has been idle for the
//! longest, so whoever merely holds connections shuts nobody out. An idle connection
//! is left alone until then: a worker that was stopped for a minute sends its write
//! on the connection that it had.

mod connection;
#[cfg(test)]
mod tests;

use axum::Router;
use connection::{Connection, IdleConnections};
use nix::sys::resource::{Resource, getrlimit};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The bytes of a request before its body; an address alone may have 65,534.
pub const MAX_HEAD_BYTES: usize = 80 * 1024;
/// The headers of a request.
pub const MAX_HEADERS: usize = 100;
/// From its first byte to its last.
pub const HEAD_DEADLINE: Duration = Duration::from_secs(10);
const MAX_CONNECTIONS: u64 = 4_096;
/// Before another attempt when the system has no file descriptor left, which
/// nothing can be awaited for.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

#[derive(Clone, Copy)]
struct Limits {
    connections: usize,
    head: Duration,
}

impl Limits {
    /// Half of the files that may be open are for what else a process does.
    fn of_this_process() -> Limits {
        let files = getrlimit(Resource::RLIMIT_NOFILE).map_or(MAX_CONNECTIONS, |(soft, _)| soft);
        Limits {
            connections: (files / 2).clamp(8, MAX_CONNECTIONS) as usize,
            head: HEAD_DEADLINE,
        }
    }
}

/// Serves until `stopping`, and then until every request under way is answered. Where
/// this is not awaited to its end, connections end by themselves.
pub async fn serve(listener: TcpListener, router: Router, stopping: CancellationToken) {
    serve_within(Limits::of_this_process(), listener, router, stopping).await;
}

async fn serve_within(
    limits: Limits,
    listener: TcpListener,
    router: Router,
    stopping: CancellationToken,
) {
    let stopping = stopping.child_token();
    let _stop = stopping.clone().drop_guard();
    let places = Places {
        free: Arc::new(Semaphore::new(limits.connections)),
        idle: Arc::default(),
    };
    let connections = TaskTracker::new();
    loop {
        let (stream, place) = tokio::select! {
            biased;
            () = stopping.cancelled() => break,
            taken = places.next(&listener) => taken,
        };
        // A socket that refuses TCP_NODELAY still works, only slower.
        let _ = stream.set_nodelay(true);
        let connection = Connection::new(places.idle.clone(), limits.head);
        let served = connection.serve(stream, router.clone(), stopping.clone());
        connections.spawn(async move {
            served.await;
            drop(place);
        });
    }
    drop(listener);
    connections.close();
    connections.wait().await;
}

struct Places {
    free: Arc<Semaphore>,
    idle: Arc<IdleConnections>,
}

impl Places {
    async fn next(&self, listener: &TcpListener) -> (TcpStream, OwnedSemaphorePermit) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => return (stream, self.place().await),
                Err(error) if is_of_the_client(&error) => {}
                Err(_) => {
                    self.idle.close_longest();
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    async fn place(&self) -> OwnedSemaphorePermit {
        loop {
            // Before the look at who is idle, so that nobody is missed who becomes so after it.
            let somebody_idle = self.idle.somebody();
            if let Ok(place) = self.free.clone().try_acquire_owned() {
                return place;
            }
            self.idle.close_longest();
            tokio::select! {
                Ok(place) = self.free.clone().acquire_owned() => return place,
                () = somebody_idle => {}
            }
        }
    }
}

/// It was gone before it was taken in.
fn is_of_the_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}
