use super::not_here;
use super::programs::Kind;
use crate::cluster::{Cluster, ClusterResult, Image, Leftovers, Need, Runtime, SweepResult};
use crate::model::Name;
use crate::progress::Progress;
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The runtime of simulated cases. It makes no clusters: a case makes its own, on a thread whose
/// clock is played.
pub struct SimulatedRuntime;

#[async_trait]
impl Runtime for SimulatedRuntime {
    fn about(&self) -> BTreeMap<String, String> {
        BTreeMap::from([("runtime".to_owned(), "sim".to_owned())])
    }

    async fn prepare(
        &self,
        _: &[Image],
        _: &dyn Progress,
    ) -> ClusterResult<BTreeMap<String, String>> {
        Ok(BTreeMap::new())
    }

    async fn create(&self, _: &Name, _: bool) -> ClusterResult<Arc<dyn Cluster>> {
        not_here("make a cluster outside of a simulation")
    }

    async fn adopt(&self, _: &Name) -> ClusterResult<Arc<dyn Cluster>> {
        not_here("adopt a simulation")
    }

    async fn sweep(&self, _: Leftovers) -> ClusterResult<SweepResult> {
        Ok(SweepResult::default())
    }

    fn lacks(&self, need: Need<'_>) -> Option<String> {
        match need {
            Need::Node(node) if Kind::of(node).is_none() => {
                let command = node.command.first().map(String::as_str).unwrap_or_default();
                let image = &node.image;
                Some(format!("{image} {command} is not simulated; {ELSEWHERE}"))
            }
            Need::AttachedContainer => {
                Some(format!("a server of yours is not simulated; {ELSEWHERE}"))
            }
            Need::Node(_)
            | Need::Led(_)
            | Need::Freezer
            | Need::Network
            | Need::PacketFilters
            | Need::OwnClocks => None,
        }
    }

    fn simulates(&self) -> bool {
        true
    }
}

pub const ELSEWHERE: &str = "use --runtime docker";
