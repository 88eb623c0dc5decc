use crate::fault::Nemesis;
use crate::model::Name;
use std::time::Duration;
use tokio::sync::broadcast::{self, error::RecvError};

/// After a fault a server may take its time to be there again.
const TRY_AGAIN: Duration = Duration::from_millis(50);

/// Listens to a node, again and again where a fault has cut it short: one of the
/// node, or of another that it needs for its answers. The error is of an end that
/// no fault explains.
pub async fn through_faults<F: Future<Output = Result<(), String>>>(
    nemesis: &Nemesis,
    node: &Name,
    rests_on: &[Name],
    mut listen: impl FnMut() -> F,
) -> Result<(), String> {
    let mut reconnected = nemesis.reconnected();
    loop {
        let listened = tokio::select! {
            listened = listen() => listened,
            () = is_back(&mut reconnected, node) => Err("it was off the network".to_owned()),
        };
        match listened {
            Err(_) if nemesis.disturbs_any(rests_on) => tokio::time::sleep(TRY_AGAIN).await,
            listened => return listened,
        }
    }
}

/// Completes when the node was put on the network again: a connection from
/// before is never told that it leads nowhere.
async fn is_back(reconnected: &mut broadcast::Receiver<Name>, node: &Name) {
    loop {
        match reconnected.recv().await {
            Ok(back) if back != *node => {}
            // Among so many it may have been this one.
            Ok(_) | Err(RecvError::Lagged(_)) => return,
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}
