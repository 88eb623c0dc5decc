use fencepost::model::LockEvent;
use fencepost::services::{Backend, Watch};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

const DEADLINE: Duration = Duration::from_secs(10);

/// An observer at a lock server, and what it has told so far.
pub struct Observer {
    stop: CancellationToken,
    told: watch::Receiver<Vec<LockEvent>>,
    observing: JoinHandle<()>,
}

impl Observer {
    /// Returns when no grant can be missed. The version of the server begins like this.
    pub async fn start(backend: Backend, address: &str, version: &str) -> Observer {
        let (tx, mut rx) = mpsc::channel(10);
        let (ready, is_ready) = oneshot::channel();
        let stop = CancellationToken::new();
        let asked_to_stop = stop.clone();
        let (telling, told) = watch::channel(Vec::new());
        let address = address.to_owned();
        let observing = tokio::spawn(async move {
            let observing = backend.servers().program.observe(Watch {
                address: &address,
                node: "server",
                keys: None,
                events: tx,
                ready,
                stop: asked_to_stop,
            });
            let collecting = async {
                while let Some(row) = rx.recv().await {
                    telling.send_modify(|rows: &mut Vec<LockEvent>| rows.push(row));
                }
            };
            let (observed, ()) = tokio::join!(observing, collecting);
            observed.unwrap();
        });
        let seen = timeout(DEADLINE, is_ready).await.unwrap().unwrap();
        assert!(seen.starts_with(version), "{seen}");
        Observer {
            stop,
            told,
            observing,
        }
    }

    /// Returns when so many rows of a key have been told.
    pub async fn has_told(&self, key: &str, rows: usize) {
        let mut told = self.told.clone();
        let enough = |all: &Vec<LockEvent>| all.iter().filter(|row| row.key == key).count() >= rows;
        let waited = timeout(DEADLINE, told.wait_for(enough)).await;
        waited.expect("the observer tells it in time").unwrap();
    }

    /// The rows of one key: other tests use the same server.
    pub async fn stop(self, key: &str) -> Vec<LockEvent> {
        self.stop.cancel();
        timeout(DEADLINE, self.observing).await.unwrap().unwrap();
        let rows = self.told.borrow();
        rows.iter().filter(|row| row.key == key).cloned().collect()
    }
}
