use super::ClusterResult;
use crate::model::Name;
use fencing_lock::Env;
use std::sync::Arc;
use toxiproxy_server::ToxiproxyApi;

/// The ways to the nodes of a cluster that is played in this process. There are no sockets, no
/// packet filters and no proxies with a control port.
pub trait PlayedCluster: Send + Sync {
    /// Returns surroundings that connect to the addresses which the cluster returns.
    fn env(&self) -> Env;
    fn toxiproxy(&self, proxy: &Name) -> ClusterResult<Arc<dyn ToxiproxyApi>>;
    /// Loses this share of the packets of a node, to and from the other nodes; none at 0.
    fn lose_packets(&self, node: &Name, percent: u8) -> ClusterResult;
    /// Returns how many packets of a node were lost; None if it loses none.
    fn lost_packets(&self, node: &Name) -> Option<u64>;
}
