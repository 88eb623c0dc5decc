use super::*;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// A server may need some time after a fault until it is there again.
const TRY_AGAIN: Duration = Duration::from_millis(50);

/// Listens to a node, again and again if a fault has cut it short: a fault of the node, or of
/// another that it needs for its answers. Fails if the listening ends and no fault explains it.
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

/// Completes when the node was put on the network again: an old connection does not learn that it
/// leads nowhere.
async fn is_back(reconnected: &mut broadcast::Receiver<Name>, node: &Name) {
    loop {
        match reconnected.recv().await {
            Ok(back) if back != *node => {}
            // Among those that were missed may have been this one.
            Ok(_) | Err(RecvError::Lagged(_)) => return,
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}
