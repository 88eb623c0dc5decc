//! Follows the resource's log, row by row as it grows.

use super::drive::Happening;
use super::through_faults::through_faults;
use super::*;
use crate::run::collect::ResourceAt;
use futures_util::{StreamExt, pin_mut};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::slice::from_ref;

const ANSWER_DEADLINE: Duration = Duration::from_secs(5);

/// Follows the log until nobody listens, or until the resource ends and no fault is the reason.
pub async fn follow(
    nemesis: Arc<Nemesis>,
    resource: ResourceAt,
    happenings: mpsc::Sender<Happening>,
) {
    let node = &resource.endpoint.node;
    // Shared by all connections: a new one delivers the log from its beginning.
    let seen = Mutex::default();
    let follow_once = || follow_once(&nemesis, &resource, &happenings, &seen);
    let followed = through_faults(&nemesis, node, from_ref(node), follow_once);
    if let Err(reason) = followed.await {
        let node = node.clone();
        // Nobody listens any more once the case is over.
        let _ = happenings
            .send(Happening::ServiceEnded { node, reason })
            .await;
    }
}

/// Follows the log over one connection; the error says how the log ended.
async fn follow_once(
    nemesis: &Nemesis,
    resource: &ResourceAt,
    happenings: &mpsc::Sender<Happening>,
    seen: &Mutex<HashSet<u64>>,
) -> Result<(), String> {
    let cluster = nemesis.field.cluster.as_ref();
    let client = resource.client(cluster, ANSWER_DEADLINE).await;
    let client = client.map_err(|error| error.to_string())?;
    let rows = client.follow().await.map_err(|error| error.to_string())?;
    pin_mut!(rows);
    while let Some(row) = rows.next().await {
        let row = row.map_err(|error| error.to_string())?;
        // A log with gaps may show a lower position after a higher one.
        let is_new = seen.lock().insert(row.seq);
        if is_new && happenings.send(Happening::Row(row)).await.is_err() {
            return Ok(());
        }
    }
    Err("its log ended".to_owned())
}
