//! The ways by which the harness reaches the nodes: past the proxies, and past every fault.

use super::programs::Program;
use super::*;
use fencing_lock::{ByteStream, World};
use futures_util::future::BoxFuture;
use std::io;
use std::time::SystemTime;
use toxiproxy_server::ToxiproxyApi;

impl PlayedCluster for SimulatedCluster {
    fn env(&self) -> Env {
        Env::of(Arc::new(Harness(self.harness.clone())))
    }

    fn toxiproxy(&self, proxy: &Name) -> ClusterResult<Arc<dyn ToxiproxyApi>> {
        match self.node(proxy, "ask")?.program {
            Some(Program::Toxiproxy(proxies)) => Ok(proxies),
            _ => not_here(&format!("ask {proxy} for its proxies")),
        }
    }

    fn lose_packets(&self, node: &Name, percent: u8) -> ClusterResult {
        self.node(node, "lose packets of")?;
        self.network.lose(node, percent);
        Ok(())
    }

    fn lost_packets(&self, node: &Name) -> Option<u64> {
        self.network.lost(node)
    }
}

/// The surroundings of the harness.
struct Harness(Arc<Process>);

#[async_trait]
impl World for Harness {
    fn wall_clock(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + self.0.wall_clock()
    }

    fn random(&self) -> u64 {
        self.0.random()
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        tokio::spawn(self.0.task(task));
    }

    async fn dial(&self, host: &str, port: u16) -> io::Result<Box<dyn ByteStream>> {
        Ok(Box::new(self.0.network().connect(None, host, port).await?))
    }
}
