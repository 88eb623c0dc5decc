//! The HTTP server of all our listeners, with a bound on everything that a client can
//! choose.
//!
//! axum's own loop accepts any number of connections and waits for a request without end.
//! Here the head of a request has a deadline and a size, and the number of connections is
//! limited: a new one replaces the one that has been idle for the longest, so a client
//! that merely holds connections shuts nobody out. An idle connection is left alone until
//! then: a worker that was stopped for a minute sends its write on the connection that it
//! had.

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

/// The limit on the bytes of a request before its body; an address alone may have 65,534.
pub const MAX_HEAD_BYTES: usize = 80 * 1024;
/// The limit on the headers of a request.
pub const MAX_HEADERS: usize = 100;
/// The time limit from the first byte of a head to its last.
pub const HEAD_DEADLINE: Duration = Duration::from_secs(10);
const MAX_CONNECTIONS: u64 = 4_096;
/// The pause before the next attempt when the system has no file descriptor left: that
/// cannot be awaited.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

#[derive(Clone, Copy)]
struct Limits {
    connections: usize,
    head: Duration,
}

impl Limits {
    /// Leaves half of the files that may be open for everything else in the process.
    fn of_this_process() -> Limits {
        let files = getrlimit(Resource::RLIMIT_NOFILE).map_or(MAX_CONNECTIONS, |(soft, _)| soft);
        Limits {
            connections: (files / 2).clamp(8, MAX_CONNECTIONS) as usize,
            head: HEAD_DEADLINE,
        }
    }
}

/// Serves until `stopping`, and then until every request under way is answered. If this
/// is dropped before its end, the connections end by themselves.
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
            // This comes before the look for idle connections, so that none is missed
            // that becomes idle later.
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

/// Returns whether the client was gone before its connection was accepted.
fn is_of_the_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}
