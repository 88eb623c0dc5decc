//! Follows the resource's log, row by row as it grows.

use super::drive::Happening;
use super::through_faults::through_faults;
use super::*;
use crate::resource::ResourceClient;
use futures_util::{StreamExt, pin_mut};
use std::slice::from_ref;
use std::sync::atomic::{AtomicU64, Ordering};

const ANSWER_DEADLINE: Duration = Duration::from_secs(5);

/// Follows the log until nobody listens, or until the resource ends and no fault is the reason.
pub async fn follow(
    nemesis: Arc<Nemesis>,
    resource: Endpoint,
    happenings: mpsc::Sender<Happening>,
) {
    let node = &resource.node;
    // Shared, because every new connection goes on from it.
    let last_seq = AtomicU64::new(0);
    let follow_once = || follow_once(&nemesis, &resource, &happenings, &last_seq);
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
    Endpoint { node, port }: &Endpoint,
    happenings: &mpsc::Sender<Happening>,
    last_seq: &AtomicU64,
) -> Result<(), String> {
    let address = nemesis.field.cluster.address(node, *port).await;
    let address = address.map_err(|error| error.to_string())?;
    let client = ResourceClient::new(&format!("http://{address}"), ANSWER_DEADLINE);
    let client = client.map_err(|error| error.to_string())?;
    let rows = client.follow().await.map_err(|error| error.to_string())?;
    pin_mut!(rows);
    while let Some(row) = rows.next().await {
        let row = row.map_err(|error| error.to_string())?;
        // A new connection delivers the log from its beginning.
        if row.seq > last_seq.fetch_max(row.seq, Ordering::Relaxed)
            && happenings.send(Happening::Row(row)).await.is_err()
        {
            return Ok(());
        }
    }
    Err("its log ended".to_owned())
}
