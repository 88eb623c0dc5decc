use super::{Cluster, ClusterError, NodeSpec};
use futures_util::future::try_join_all;

/// Starts services and returns when all of them are ready. Those that come
/// after others do not wait until these are ready, only for what they are to
/// say first: etcd's members, for one, get ready together or not at all.
pub async fn start_services(
    cluster: &dyn Cluster,
    services: &[NodeSpec],
) -> Result<(), ClusterError> {
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

async fn said(
    cluster: &dyn Cluster,
    node: &NodeSpec,
    text: &Option<String>,
) -> Result<(), ClusterError> {
    match text {
        Some(text) => cluster.await_said(&node.name, text).await,
        None => Ok(()),
    }
}
