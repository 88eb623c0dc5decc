//! Makes sure that nothing is under way to the resource any more.

use super::*;
use crate::resource::ResourceClient;
use tokio::time::Instant;

const ANSWER_DEADLINE: Duration = Duration::from_secs(5);
/// A write that has arrived is in the log within a small part of this time.
const STILLNESS: Duration = Duration::from_millis(200);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Kills the proxies of the workers, which have all ended themselves, and waits until the log does
/// not grow any more. A write that is not in the log then was not applied.
pub async fn settle(
    nodes: &CaseNodes,
    cluster: &Arc<dyn Cluster>,
    nemesis: &Nemesis,
) -> RunResult<bool> {
    if nemesis.hang_up(&nodes.worker_names()).await.is_err() {
        return Ok(false);
    }
    let resource = nodes.resource_at();
    let client = resource.client(cluster.as_ref(), ANSWER_DEADLINE).await?;
    is_still(&client).await
}

/// Returns whether the log has stopped growing.
pub async fn is_still(client: &ResourceClient) -> RunResult<bool> {
    let give_up_at = Instant::now() + ANSWER_DEADLINE;
    let (mut length, mut since) = (None, Instant::now());
    while Instant::now() < give_up_at {
        let log = client.log().await.map_err(|error| RunError::Resource {
            what: "its log".to_owned(),
            reason: error.to_string(),
        })?;
        if length != Some(log.len()) {
            (length, since) = (Some(log.len()), Instant::now());
        } else if since.elapsed() >= STILLNESS {
            return Ok(true);
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    Ok(false)
}
