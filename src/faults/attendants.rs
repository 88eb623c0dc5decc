//! Helpers that run beside nodes and are controlled over their consoles: one beside each node,
//! started when it is first needed.

use super::*;
use futures_util::future::join_all;

/// The helper of one node, while it runs. One caller at a time talks to it.
pub type Place<T> = Arc<tokio::sync::Mutex<Option<T>>>;

pub struct Attendants<T> {
    cluster: Arc<dyn Cluster>,
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
        Arc::clone(self.places.lock().entry(node.clone()).or_default())
    }

    pub async fn start(&self, helper: &Helper) -> ClusterResult<Console> {
        // A call that was given up may have left a helper of this name.
        self.cluster.discard(&helper.name).await?;
        self.cluster.start_helper(helper).await
    }

    /// Removes the helper of a node that starts again: the node gets a new network, and its old
    /// helper is not in it.
    pub async fn forget(&self, node: &Name) {
        let place = self.places.lock().remove(node);
        if let Some(place) = place {
            place.lock().await.take();
            // A helper that cannot be removed now is removed with its cluster.
            let _ = self.cluster.discard(&(self.name_of)(node)).await;
        }
    }

    pub async fn dismiss_all(&self) {
        let nodes: Vec<Name> = self.places.lock().keys().cloned().collect();
        join_all(nodes.iter().map(|node| self.forget(node))).await;
    }
}
