//! The resource's log, row by row as it grows.

use super::drive::Happening;
use super::through_faults::through_faults;
use crate::cluster::Cluster;
use crate::cluster::topology::Endpoint;
use crate::fault::Nemesis;
use crate::resource::ResourceClient;
use futures_util::{StreamExt, pin_mut};
use std::slice::from_ref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;

const ANSWER_DEADLINE: Duration = Duration::from_secs(5);

pub struct Follower {
    pub cluster: Arc<dyn Cluster>,
    pub nemesis: Arc<Nemesis>,
    pub resource: Endpoint,
    pub happenings: mpsc::Sender<Happening>,
}

impl Follower {
    /// Until nobody listens, or the resource ends and no fault is the reason.
    pub async fn follow(self) {
        let node = &self.resource.node;
        // A cell, because every new connection goes on from it.
        let last_seq = AtomicU64::new(0);
        let followed = through_faults(&self.nemesis, node, from_ref(node), || {
            self.follow_once(&last_seq)
        });
        if let Err(reason) = followed.await {
            let node = node.clone();
            let ended = Happening::ServiceEnded { node, reason };
            // Nobody listens any more once the case is over.
            let _ = self.happenings.send(ended).await;
        }
    }

    /// The error says how the log ended.
    async fn follow_once(&self, last_seq: &AtomicU64) -> Result<(), String> {
        let Endpoint { node, port } = &self.resource;
        let address = self.cluster.address(node, *port).await;
        let address = address.map_err(|error| error.to_string())?;
        let client = ResourceClient::new(&format!("http://{address}"), ANSWER_DEADLINE);
        let client = client.map_err(|error| error.to_string())?;
        let rows = client.follow().await.map_err(|error| error.to_string())?;
        pin_mut!(rows);
        while let Some(row) = rows.next().await {
            let row = row.map_err(|error| error.to_string())?;
            // After a new connection the log comes from its beginning.
            if row.seq > last_seq.fetch_max(row.seq, Ordering::Relaxed)
                && self.happenings.send(Happening::Row(row)).await.is_err()
            {
                return Ok(());
            }
        }
        Err("its log ended".to_owned())
    }
}
