//! The third kind of cluster: no containers, no sockets, no real time. Real workers with real lock
//! clients run on simulated servers, on one thread whose clock goes on when nobody has anything to
//! do. Everything random comes from the seed.
//!
//! A process is its tasks: while it is stopped nobody polls them, so its timers fire and nobody
//! looks, as with SIGSTOP. A test compares the servers with real ones, and the verdicts of
//! scenarios with those of containers.

mod clocks;
mod etcd;
mod helper;
mod memory;
mod network;
mod pipe;
mod process;
mod programs;
mod runtime;
mod ways;
mod worker;

pub use runtime::{ELSEWHERE, SimulatedRuntime};

use crate::cluster::topology::Endpoint;
use crate::cluster::{
    Cluster, ClusterError, ClusterResult, Console, Helper, NodeSpec, NodeState, PlayedCluster,
    ProxyRoute, Signal, ThreadState,
};
use crate::model::{Fence, LockEvent, Name};
use crate::resource::{PlayedClient, ResourceClient};
use crate::services::KeyTemplate;
use async_trait::async_trait;
use fencing_lock::Env;
use network::Network;
use parking_lot::Mutex;
use process::{Process, Surroundings};
use programs::{Observers, Program};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

/// The longest time that a server takes to start.
const LONGEST_START_MS: u64 = 40;
const READY_DEADLINE: Duration = Duration::from_secs(30);

/// The nodes of one case. The runtime has to have one thread and a clock that is paused.
pub struct SimulatedCluster {
    network: Arc<Network>,
    /// The process of the harness and of its helpers.
    harness: Arc<Process>,
    nodes: Mutex<BTreeMap<Name, Node>>,
    /// How often each node was started, also before it was discarded.
    starts: Mutex<BTreeMap<Name, u32>>,
    observers: Mutex<BTreeMap<Name, Observers>>,
    fence: Fence,
    seed: u64,
}

#[derive(Clone)]
struct Node {
    /// None for a worker.
    program: Option<Program>,
    process: Option<Arc<Process>>,
    start: u32,
}

impl SimulatedCluster {
    pub fn new(fence: Fence, seed: u64) -> Arc<SimulatedCluster> {
        let network = Network::new(seed);
        let harness = Name::of_id(Uuid::nil());
        Arc::new(SimulatedCluster {
            harness: Process::new(&harness, seed, 0, &network),
            network,
            nodes: Mutex::default(),
            starts: Mutex::default(),
            observers: Mutex::default(),
            fence,
            seed,
        })
    }

    /// Returns the resource, past all faults.
    pub fn resource(&self, node: &Name) -> ClusterResult<ResourceClient> {
        match self.node(node, "ask")?.program {
            Some(Program::Resource(resource)) => {
                Ok(ResourceClient::Played(PlayedClient::Beside(resource)))
            }
            _ => not_here(&format!("write to {node}")),
        }
    }

    /// Reports what happens to locks at a server from its creation on; returns its version.
    pub fn observe(
        &self,
        server: &Name,
        keys: Option<KeyTemplate>,
        record: impl Fn(LockEvent) + Send + Sync + 'static,
    ) -> String {
        let mut observers = self.observers.lock();
        let at_server = observers.entry(server.clone());
        let at_server = at_server.or_insert_with(|| Observers {
            keys: Vec::new(),
            record: Arc::new(record),
        });
        at_server.keys.push(keys);
        "simulated".to_owned()
    }

    fn node(&self, node: &Name, what: &str) -> ClusterResult<Node> {
        let found = self.nodes.lock().get(node).cloned();
        found.ok_or_else(|| ClusterError::Gone {
            what: format!("{what} {node}"),
        })
    }

    fn process(&self, node: &Name, what: &str) -> ClusterResult<Arc<Process>> {
        let process = self.node(node, what)?.process;
        process.ok_or_else(|| ClusterError::failed(format!("{what} {node}"), "it was not started"))
    }

    /// Makes the next process of a node.
    fn new_process(&self, name: &Name) -> ClusterResult<(Option<Program>, Arc<Process>)> {
        let mut nodes = self.nodes.lock();
        let node = nodes.get_mut(name).ok_or_else(|| ClusterError::Gone {
            what: format!("start {name}"),
        })?;
        let mut starts = self.starts.lock();
        let start = starts.entry(name.clone()).or_default();
        *start += 1;
        node.start = *start;
        let process = Process::new(name, self.seed, *start, &self.network);
        node.process = Some(process.clone());
        Ok((node.program.clone(), process))
    }
}

#[async_trait]
impl Cluster for SimulatedCluster {
    async fn create_node(&self, node: &NodeSpec) -> ClusterResult {
        let program = Program::new(node, self.fence)?;
        if let Some(observers) = self.observers.lock().get(&node.name) {
            program.observe(&node.name, observers);
        }
        let new = Node {
            program: Some(program),
            process: None,
            start: 0,
        };
        self.network.join(&node.name);
        self.nodes.lock().insert(node.name.clone(), new);
        Ok(())
    }

    async fn start(&self, node: &NodeSpec) -> ClusterResult {
        let (program, process) = self.new_process(&node.name)?;
        let start_ms = process.random() % LONGEST_START_MS;
        sleep(Duration::from_millis(start_ms)).await;
        if let Some(program) = program {
            program.start(node, &process);
        }
        Ok(())
    }

    async fn await_said(&self, node: &Name, text: &str) -> ClusterResult {
        let Node {
            program, process, ..
        } = self.node(node, "listen to")?;
        if process.is_some_and(|process| process.exit_code().is_some()) {
            return Err(ClusterError::NotReady {
                node: node.to_string(),
                reason: "its process ended".to_owned(),
                log: String::new(),
            });
        }
        if let Some(program) = program {
            let ready = timeout(READY_DEADLINE, program.said(text)).await;
            let what = format!("{node} to say `{text}`");
            ready.map_err(|_| ClusterError::deadline(what, READY_DEADLINE))?;
        }
        Ok(())
    }

    async fn start_attached(&self, node: &NodeSpec) -> ClusterResult<Console> {
        let new = Node {
            program: None,
            process: None,
            start: 0,
        };
        self.nodes.lock().insert(node.name.clone(), new);
        self.network.join(&node.name);
        let (_, process) = self.new_process(&node.name)?;
        worker::start(node, &process)
    }

    async fn address(&self, node: &Name, port: u16) -> ClusterResult<SocketAddr> {
        Ok(SocketAddr::new(self.inner_address(node).await?, port))
    }

    async fn signal(&self, node: &Name, signal: Signal) -> ClusterResult {
        let process = self.process(node, "signal")?;
        if process.exit_code().is_some() {
            let what = format!("signal {node}");
            return Err(ClusterError::failed(what, "its process has ended"));
        }
        match signal {
            Signal::Stop => process.stop(),
            Signal::Continue => process.go_on(),
            Signal::Kill => process.end(KILLED),
        }
        Ok(())
    }

    async fn threads(&self, node: &Name) -> ClusterResult<Vec<ThreadState>> {
        let process = self.process(node, "see the threads of")?;
        Ok(match (process.exit_code(), process.is_stopped()) {
            (Some(_), _) => Vec::new(),
            (None, true) => vec![ThreadState('T')],
            (None, false) => vec![ThreadState('S')],
        })
    }

    async fn await_end(&self, node: &Name) -> ClusterResult {
        match self.process(node, "wait for the end of")?.exit_code() {
            Some(_) => Ok(()),
            None => not_here(&format!("wait for the end of {node}")),
        }
    }

    async fn state(&self, node: &Name) -> ClusterResult<NodeState> {
        let node = self.node(node, "look at")?;
        let Some(process) = &node.process else {
            return Ok(NodeState::default());
        };
        Ok(NodeState {
            running: process.exit_code().is_none(),
            frozen: process.is_frozen(),
            started_at: format!("start {}", node.start),
            exit_code: process.exit_code(),
            local_pid: None,
        })
    }

    async fn freeze(&self, node: &Name) -> ClusterResult {
        self.process(node, "freeze")?.freeze(true);
        Ok(())
    }

    async fn thaw(&self, node: &Name) -> ClusterResult {
        self.process(node, "thaw")?.freeze(false);
        Ok(())
    }

    async fn discard(&self, node: &Name) -> ClusterResult {
        let removed = self.nodes.lock().remove(node);
        if let Some(process) = removed.and_then(|node| node.process) {
            process.end(KILLED);
        }
        Ok(())
    }

    async fn disconnect(&self, node: &Name) -> ClusterResult {
        self.node(node, "take off the network")?;
        self.network.disconnect(node);
        Ok(())
    }

    async fn connect(&self, node: &Name) -> ClusterResult {
        self.node(node, "put on the network")?;
        self.network.reconnect(node);
        Ok(())
    }

    async fn way(&self, proxy: &Name, server: &Endpoint) -> ClusterResult<ProxyRoute> {
        let proxy = self.inner_address(proxy).await?;
        Ok(ProxyRoute::by_name(server, proxy))
    }

    async fn inner_address(&self, node: &Name) -> ClusterResult<IpAddr> {
        let address = self.network.address(node).map(IpAddr::from);
        let what = || format!("find {node} on the network");
        address.ok_or_else(|| ClusterError::failed(what(), "it is not there"))
    }

    async fn start_helper(&self, helper: &Helper) -> ClusterResult<Console> {
        let process = self.process(&helper.beside, "start a helper beside")?;
        let env = Env::of(Arc::new(Surroundings(process)));
        helper::start(helper, env, &self.harness)
    }

    async fn run_helper(&self, helper: &Helper) -> ClusterResult<String> {
        let process = self.process(&helper.beside, "run a helper beside")?;
        helper::change_clocks(helper, &process)
    }

    fn played(&self) -> Option<&dyn PlayedCluster> {
        Some(self)
    }

    async fn logs(&self, _: &Name) -> ClusterResult<String> {
        Ok(String::new())
    }

    async fn remove(&self) -> ClusterResult {
        Ok(())
    }
}

/// The network knows the processes and they know it, so nothing of them would ever be freed.
impl Drop for SimulatedCluster {
    fn drop(&mut self) {
        self.network.forget();
    }
}

/// The exit code of a process that SIGKILL ended.
const KILLED: i64 = 137;

fn not_here<T>(what: &str) -> ClusterResult<T> {
    Err(ClusterError::NotHere {
        what: what.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::topology::Port;

    /// A search plays millions.
    #[test]
    fn nothing_of_a_cluster_outlives_it() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let network = runtime.block_on(async {
            let cluster = SimulatedCluster::new(Fence::On, 1);
            let mut node = NodeSpec::new("redis".into(), "fencepost/redis:7", Vec::new());
            node.ports = vec![Port {
                host: 6379,
                container: 6379,
            }];
            cluster.create_node(&node).await.unwrap();
            cluster.start(&node).await.unwrap();
            let end = cluster.network.connect(None, "redis", 6379).await;
            assert!(end.is_ok());
            Arc::downgrade(&cluster.network)
        });
        drop(runtime);
        assert!(network.upgrade().is_none());
    }
}
