//! A bystander beside each lock server, for `locks.jsonl`.

use super::RunError;
use super::evidence::Evidence;
use super::through_faults::through_faults;
use crate::cluster::Cluster;
use crate::cluster::topology::Endpoint;
use crate::dlock::{observe_etcd, observe_redis};
use crate::fault::Nemesis;
use crate::model::{KeyTemplate, LockEvent, LockServers, Name};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

const WAITING_EVENTS: usize = 1024;
const ANSWER_DEADLINE: Duration = Duration::from_secs(10);

/// What is to be watched, and where.
#[derive(Clone)]
pub struct Watched {
    pub kind: LockServers,
    pub server: Endpoint,
    /// Where the locks lie that another library makes; None for this program's own.
    pub keys: Option<KeyTemplate>,
    /// Whose faults can be why this server does not answer.
    pub rests_on: Vec<Name>,
}

pub struct Observer {
    stop: CancellationToken,
    watching: AbortOnDropHandle<Result<(), String>>,
    writing: AbortOnDropHandle<()>,
}

/// What a watch goes on with after a fault has cut it short.
struct Watch {
    cluster: Arc<dyn Cluster>,
    nemesis: Arc<Nemesis>,
    watched: Watched,
    events: mpsc::Sender<LockEvent>,
    stop: CancellationToken,
}

impl Watch {
    /// Until it is stopped, or ends and no fault is the reason.
    async fn go_on(self, ready: oneshot::Sender<String>) -> Result<(), String> {
        let Watched {
            server, rests_on, ..
        } = &self.watched;
        let node = &server.node;
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
        let Watched {
            kind, server, keys, ..
        } = &self.watched;
        let (Endpoint { node, port }, keys) = (server, keys.as_ref());
        let address = self.cluster.address(node, *port).await;
        let address = address.map_err(|error| error.to_string())?.to_string();
        // Only the first time does anybody wait for it.
        let ready = ready.unwrap_or_else(|| oneshot::channel().0);
        let (events, stop) = (self.events.clone(), self.stop.clone());
        let watched = match kind {
            LockServers::OneRedis | LockServers::RedisNodes => {
                observe_redis(&address, node, keys, events, ready, stop).await
            }
            LockServers::Etcd => observe_etcd(&address, node, keys, events, ready, stop).await,
        };
        watched.map_err(|error| error.to_string())
    }
}

impl Observer {
    /// Returns once no grant can be missed, with the server's exact version.
    pub async fn start(
        cluster: &Arc<dyn Cluster>,
        nemesis: &Arc<Nemesis>,
        evidence: &Arc<Evidence>,
        watched: Watched,
    ) -> Result<(Observer, String), RunError> {
        let (send, mut events) = mpsc::channel(WAITING_EVENTS);
        let (ready, is_ready) = oneshot::channel();
        let stop = CancellationToken::new();
        let node = watched.server.node.clone();
        let watch = Watch {
            cluster: Arc::clone(cluster),
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

    /// Ends the watch; returns why it is incomplete, where it is.
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
