//! Accepts clients. Each has a separate task, which also connects to the upstream: an
//! unreachable upstream holds nobody else up.

use super::connection::{Route, carry};
use super::*;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;
use tokio_util::sync::DropGuard;

/// The limit on open clients of one proxy; more wait in the backlog of its socket.
const MOST_CLIENTS: usize = 4_096;
/// The pause before the next attempt when the system has no file descriptor left: that
/// cannot be awaited.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The task that accepts clients. Dropping this ends the task, with the tasks of all
/// clients.
pub struct Accepting {
    stop: DropGuard,
    task: JoinHandle<()>,
}

impl Accepting {
    pub fn start<F>(task: impl FnOnce(CancellationToken) -> F) -> Accepting
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let stop = CancellationToken::new();
        let task = tokio::spawn(task(stop.clone()));
        let stop = stop.drop_guard();
        Accepting { stop, task }
    }

    /// Returns once all of its sockets are closed.
    pub async fn stop(self) {
        drop(self.stop);
        // A panic was already printed, and closed the sockets too.
        let _ = self.task.await;
    }
}

pub async fn accept_clients(
    listener: TcpListener,
    route: Route,
    clients: Arc<AtomicU64>,
    log: LogLevel,
    stop: CancellationToken,
) {
    let route = Arc::new(route);
    let mut open = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(_) = open.join_next() => continue,
            accepted = listener.accept(), if open.len() < MOST_CLIENTS => accepted,
        };
        match accepted {
            Ok((client, address)) => {
                let number = clients.fetch_add(1, Ordering::Relaxed) + 1;
                let route = route.clone();
                open.spawn(async move {
                    log.debug(format_args!("{}: client {number} {address}", route.proxy));
                    if let Err(error) = carry(client, number, &route).await {
                        let Route {
                            proxy, upstream, ..
                        } = &*route;
                        log.warn(format_args!(
                            "{proxy}: client {number} is closed: {upstream}: {error}"
                        ));
                    }
                });
            }
            Err(error) => {
                log.warn(format_args!("{}: cannot accept: {error}", route.proxy));
                tokio::select! {
                    () = stop.cancelled() => break,
                    () = sleep(ACCEPT_PAUSE) => {}
                }
            }
        }
    }
    drop(listener);
    open.shutdown().await;
}
