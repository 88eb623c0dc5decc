//! An observer of each lock server, for `locks.jsonl`.

use super::evidence::Evidence;
use super::through_faults::through_faults;
use super::*;
use crate::model::LockEvent;
use crate::services::{self, KeyTemplate, LockServers};
use tokio::sync::oneshot;
use tokio_util::task::AbortOnDropHandle;

const WAITING_EVENTS: usize = 1024;
const ANSWER_DEADLINE: Duration = Duration::from_secs(10);

/// A kind of keys to watch, and the server that has them.
#[derive(Clone)]
pub struct ObserverTarget {
    pub kind: LockServers,
    pub server: Endpoint,
    /// The keys of locks that another library makes; None for this program's own.
    pub keys: Option<KeyTemplate>,
    /// The nodes whose faults can be the reason that this server does not answer.
    pub rests_on: Vec<Name>,
    /// How it is watched if it is somebody else's.
    pub guest: Option<GuestWatch>,
}

/// The address of an attached server for this process, and how the keys of the case begin.
#[derive(Clone)]
pub struct GuestWatch {
    pub url: String,
    pub prefix: String,
}

pub struct Observer {
    stop: CancellationToken,
    watching: AbortOnDropHandle<Result<(), String>>,
    writing: AbortOnDropHandle<()>,
}

/// A watch that goes on after a fault has cut it short.
struct Watch {
    nemesis: Arc<Nemesis>,
    watched: ObserverTarget,
    events: mpsc::Sender<LockEvent>,
    stop: CancellationToken,
}

impl Watch {
    /// Watches until it is stopped, or until the watch ends without a fault as the reason.
    async fn go_on(self, ready: oneshot::Sender<String>) -> Result<(), String> {
        let (node, rests_on) = (&self.watched.server.node, &self.watched.rests_on);
        let mut ready = Some(ready);
        let watched = through_faults(&self.nemesis, node, rests_on, || {
            let watched = self.watch_once(ready.take());
            async {
                match watched.await {
                    Err(_) if self.stop.is_cancelled() && self.is_disturbed() => Ok(()),
                    watched => watched,
                }
            }
        });
        let watched = watched.await;
        watched.map_err(|reason| format!("what {node} held is not known to the end: {reason}"))
    }

    fn is_disturbed(&self) -> bool {
        self.nemesis.disturbs_any(&self.watched.rests_on)
    }

    async fn watch_once(&self, ready: Option<oneshot::Sender<String>>) -> Result<(), String> {
        let watched = &self.watched;
        let Endpoint { node, port } = &watched.server;
        let address = match &watched.guest {
            Some(guest) => guest.url.clone(),
            None => {
                let address = self.nemesis.field.cluster.address(node, *port).await;
                address.map_err(|error| error.to_string())?.to_string()
            }
        };
        // The start waits for it the first time only.
        let ready = ready.unwrap_or_else(|| oneshot::channel().0);
        let (events, stop) = (self.events.clone(), self.stop.clone());
        let watch = services::Watch {
            address: &address,
            node,
            keys: watched.keys.as_ref(),
            events,
            ready,
            stop,
        };
        let program = watched.kind.program;
        let ended = match &watched.guest {
            Some(guest) => program.observe_as_guest(watch, &guest.prefix).await,
            None => program.observe(watch).await,
        };
        ended.map_err(|error| error.to_string())
    }
}

impl Observer {
    /// Returns once no grant can be missed, with the server's exact version.
    pub async fn start(
        nemesis: &Arc<Nemesis>,
        evidence: &Arc<Evidence>,
        watched: ObserverTarget,
    ) -> RunResult<(Observer, String)> {
        let (send, mut events) = mpsc::channel(WAITING_EVENTS);
        let (ready, is_ready) = oneshot::channel();
        let stop = CancellationToken::new();
        let node = watched.server.node.clone();
        let watch = Watch {
            nemesis: Arc::clone(nemesis),
            watched,
            events: send,
            stop: stop.clone(),
        };
        let watching = AbortOnDropHandle::new(tokio::spawn(watch.go_on(ready)));
        let evidence = Arc::clone(evidence);
        let writing = AbortOnDropHandle::new(tokio::spawn(async move {
            while let Some(event) = events.recv().await {
                evidence.lock(&event);
            }
        }));
        let observer = Observer {
            stop,
            watching,
            writing,
        };
        match tokio::time::timeout(ANSWER_DEADLINE, is_ready).await {
            Ok(Ok(version)) => Ok((observer, version)),
            _ => Err(RunError::ServiceEnded {
                what: format!("the observer on {node}"),
                node,
                log: observer.stop().await.unwrap_or_default(),
            }),
        }
    }

    /// Ends the watch; returns why it is incomplete, if it is.
    pub async fn stop(self) -> Option<String> {
        self.stop.cancel();
        let ended = async {
            let watched = self.watching.await;
            let _ = self.writing.await;
            watched
                .map_err(|error| error.to_string())
                .and_then(|result| result)
        };
        match tokio::time::timeout(ANSWER_DEADLINE, ended).await {
            Ok(result) => result.err(),
            Err(_) => Some("an observer of a lock server did not end".to_owned()),
        }
    }
}
