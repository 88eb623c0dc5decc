use super::*;
use futures_util::future::try_join_all;

/// Starts services and returns when all of them are ready. Services that come after others do not
/// wait until these are ready, only for the line that these print first: etcd's members, for
/// example, get ready together or not at all.
pub async fn start_services(cluster: &dyn Cluster, services: &[NodeSpec]) -> ClusterResult {
    try_join_all(services.iter().map(|node| cluster.create_node(node))).await?;
    for after_others in [false, true] {
        let wave = services
            .iter()
            .filter(|node| node.after_others == after_others);
        try_join_all(wave.map(async |node| {
            cluster.start(node).await?;
            said(cluster, node, &node.started).await
        }))
        .await?;
    }
    try_join_all(services.iter().map(|node| said(cluster, node, &node.ready))).await?;
    Ok(())
}

async fn said(cluster: &dyn Cluster, node: &NodeSpec, text: &Option<String>) -> ClusterResult {
    match text {
        Some(text) => cluster.await_said(&node.name, text).await,
        None => Ok(()),
    }
}
