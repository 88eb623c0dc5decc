//! Collects the record after the faults are healed: the resource's whole log, its values and its
//! metric, and the output of every node.

use super::evidence::Evidence;
use super::*;
use crate::model::{ResourceKind, RowOutcome};
use crate::resource::ResourceClient;
use futures_util::future::join_all;
use std::collections::BTreeSet;

pub const ANSWER_DEADLINE: Duration = Duration::from_secs(10);

/// A load may have a key for every row. A sample of the values is enough to see that the resource
/// holds what it accepted.
const MOST_VALUES: usize = 256;

pub async fn collect(
    nodes: &CaseNodes,
    cluster: &Arc<dyn Cluster>,
    evidence: &Evidence,
    notes: &mut CaseNotes,
) -> RunResult {
    let ask = async {
        let client = nodes
            .resource_at()
            .client(cluster.as_ref(), ANSWER_DEADLINE)
            .await?;
        ask_resource(&client, &nodes.resource.node, evidence, notes).await
    };
    let (judged, ()) = tokio::join!(ask, save_logs(nodes, cluster, evidence));
    judged
}

/// The resource of a case, as the orchestrator reaches it.
pub struct ResourceAt {
    pub endpoint: Endpoint,
    pub kind: ResourceKind,
}

impl ResourceAt {
    pub async fn client(
        &self,
        cluster: &dyn Cluster,
        deadline: Duration,
    ) -> RunResult<ResourceClient> {
        let client = ResourceClient::new(&self.url(cluster).await?, deadline);
        client.map_err(|error| RunError::Resource {
            what: "anything".to_owned(),
            reason: error.to_string(),
        })
    }

    pub async fn url(&self, cluster: &dyn Cluster) -> RunResult<String> {
        let Endpoint { node, port } = &self.endpoint;
        Ok(self.kind.url(cluster.address(node, *port).await?))
    }
}

/// Asks the resource for its log, its metric and its values. `node` is the resource's name.
pub async fn ask_resource(
    client: &ResourceClient,
    node: &str,
    evidence: &Evidence,
    notes: &mut CaseNotes,
) -> RunResult {
    let failed = |what: &str| {
        let what = what.to_owned();
        |error: crate::resource::ClientError| RunError::Resource {
            what,
            reason: error.to_string(),
        }
    };
    let log = client.log().await.map_err(failed("its log"))?;
    evidence.complete_log(&log)?;
    notes.log_rows = Some(log.len() as u64);
    notes.log_has_gaps = client.leaves_gaps();
    let rejections = client.stale_rejections().await;
    notes.stale_rejections_metric = rejections.map_err(failed("its metrics"))?;
    notes.resource = Some(node.to_owned());
    let accepted = log.iter().filter(|row| row.outcome == RowOutcome::Accepted);
    let keys: BTreeSet<&str> = accepted.map(|row| row.key.as_str()).collect();
    for key in keys.into_iter().take(MOST_VALUES) {
        let stored = client.get(key).await.map_err(failed("a value"))?;
        let value = stored.map(|stored| (key.to_owned(), stored.value));
        notes.values.extend(value);
    }
    Ok(())
}

/// Saves the logs of all nodes. They help people and decide nothing, so a missing log is not an
/// error.
pub async fn save_logs(nodes: &CaseNodes, cluster: &Arc<dyn Cluster>, evidence: &Evidence) {
    let all = nodes.services.iter().chain(&nodes.workers);
    join_all(all.map(|node| async move {
        let text = cluster.logs(&node.name).await;
        let text = text.unwrap_or_else(|error| format!("{error}\n"));
        let _ = evidence.node_log(&node.name, &text);
    }))
    .await;
}
