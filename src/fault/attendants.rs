//! Helpers that stand beside nodes and are spoken to over their consoles: one
//! beside each node, started when it is first needed.

use super::lock;
use crate::cluster::{Cluster, ClusterError, Console, Helper};
use crate::model::Name;
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Where the helper of one node is, while it is there: spoken to by one at a time.
pub type Place<T> = Arc<tokio::sync::Mutex<Option<T>>>;

pub struct Attendants<T> {
    cluster: Arc<dyn Cluster>,
    /// What the helper of a node is called.
    name_of: fn(&Name) -> Name,
    places: Mutex<BTreeMap<Name, Place<T>>>,
}

impl<T> Attendants<T> {
    pub fn new(cluster: Arc<dyn Cluster>, name_of: fn(&Name) -> Name) -> Attendants<T> {
        Attendants {
            cluster,
            name_of,
            places: Mutex::default(),
        }
    }

    pub fn beside(&self, node: &Name) -> Place<T> {
        Arc::clone(lock(&self.places).entry(node.clone()).or_default())
    }

    pub async fn start(&self, helper: &Helper) -> Result<Console, ClusterError> {
        // One of this name may be left of a call that was given up.
        self.cluster.discard(&helper.name).await?;
        self.cluster.start_helper(helper).await
    }

    /// A node that starts again gets a new network, which its old helper is not in.
    pub async fn forget(&self, node: &Name) {
        let place = lock(&self.places).remove(node);
        if let Some(place) = place {
            place.lock().await.take();
            // What cannot be removed now is removed with its cluster.
            let _ = self.cluster.discard(&(self.name_of)(node)).await;
        }
    }

    pub async fn dismiss_all(&self) {
        let nodes: Vec<Name> = lock(&self.places).keys().cloned().collect();
        join_all(nodes.iter().map(|node| self.forget(node))).await;
    }
}
