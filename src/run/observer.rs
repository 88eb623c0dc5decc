//! A bystander beside each lock server, for `locks.jsonl`.

use super::RunError;
use super::evidence::Evidence;
use crate::cluster::Cluster;
use crate::cluster::topology::Endpoint;
use crate::dlock::{observe_etcd, observe_redis};
use crate::model::LockServers;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const WAITING_EVENTS: usize = 1024;
const ANSWER_DEADLINE: Duration = Duration::from_secs(10);

pub struct Observer {
    stop: CancellationToken,
    watching: JoinHandle<Result<(), String>>,
    writing: JoinHandle<()>,
}

impl Observer {
    /// Returns once no grant can be missed, with the server's exact version.
    pub async fn start(
        cluster: &Arc<dyn Cluster>,
        evidence: &Arc<Evidence>,
        kind: LockServers,
        server: &Endpoint,
    ) -> Result<(Observer, String), RunError> {
        let address = cluster.address(&server.node, server.port).await?;
        let (send, mut events) = mpsc::channel(WAITING_EVENTS);
        let (ready, is_ready) = oneshot::channel();
        let stop = CancellationToken::new();
        let (node, stopped) = (server.node.clone(), stop.clone());
        let watching = tokio::spawn(async move {
            let address = address.to_string();
            let watched = match kind {
                LockServers::OneRedis | LockServers::RedisNodes => {
                    observe_redis(&address, &node, send, ready, stopped).await
                }
                LockServers::Etcd => observe_etcd(&address, &node, send, ready, stopped).await,
            };
            watched.map_err(|error| format!("what {node} held is not known to the end: {error}"))
        });
        let evidence = Arc::clone(evidence);
        let writing = tokio::spawn(async move {
            while let Some(event) = events.recv().await {
                evidence.lock(&event);
            }
        });
        let observer = Observer {
            stop,
            watching,
            writing,
        };
        match tokio::time::timeout(ANSWER_DEADLINE, is_ready).await {
            Ok(Ok(version)) => Ok((observer, version)),
            _ => Err(RunError::ServiceEnded {
                what: format!("the observer on {}", server.node),
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
