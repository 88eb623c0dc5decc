//! Where the services and workers of a case live: containers (`docker/`) or
//! processes of this machine (`local/`). Everything outside sees the [`Cluster`]
//! trait; `docker/` is the only folder that names the Docker client.

mod console;
pub mod docker;
mod error;
mod image;
mod last_lines;
mod lines;
pub mod local;
mod need;
mod owner;
mod proc_stat;
mod program_path;
mod rights;
mod start;
pub mod topology;
mod way;

pub use console::{Console, ConsoleLine, Stdin};
pub use error::ClusterError;
pub use image::Image;
pub use last_lines::LastLines;
pub use need::Need;
pub use owner::Owner;
pub use program_path::find_program;
pub use rights::Rights;
pub use start::start_services;
pub use topology::{OWN_IMAGE, PACKET_FILTER_IMAGE, Topology, TopologyError};
pub use way::Way;

use crate::model::Name;
use crate::progress::Progress;
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use topology::Endpoint;

/// One process to start: a service of the topology, or a worker.
#[derive(Clone, Debug)]
pub struct NodeSpec {
    /// Its name on the network, and in every message.
    pub name: Name,
    pub image: String,
    pub command: Vec<String>,
    pub environment: BTreeMap<String, String>,
    /// The settings of its environment that hold addresses; the others mean what
    /// they say, also where they look like one.
    pub addressed: Vec<String>,
    pub ports: Vec<topology::Port>,
    /// The log line that says it is ready; without one, running is ready.
    pub ready: Option<String>,
    /// The log line at which those that come after it are started; without one,
    /// running is enough.
    pub started: Option<String>,
    /// Started after the services without this.
    pub after_others: bool,
    /// Names that lead elsewhere for this node than for the others.
    pub hosts: BTreeMap<Name, SocketAddr>,
    /// For containers; a process of this machine has those of this program.
    pub rights: Rights,
}

impl NodeSpec {
    /// A process and nothing more: no ports, no names, no rights beyond the least.
    pub fn new(name: Name, image: &str, command: Vec<String>) -> NodeSpec {
        NodeSpec {
            name,
            image: image.to_owned(),
            command,
            environment: BTreeMap::new(),
            addressed: Vec::new(),
            ports: Vec::new(),
            ready: None,
            started: None,
            after_others: false,
            hosts: BTreeMap::new(),
            rights: Rights::default(),
        }
    }
}

/// A process beside a node: it sees what the node sees, for a fault or its proof.
#[derive(Clone, Debug)]
pub struct Helper {
    /// Its own name; removal and messages go by it.
    pub name: Name,
    pub image: String,
    pub command: Vec<String>,
    /// The node it stands beside.
    pub beside: Name,
    pub shares: Shared,
}

/// What a helper shares with its node, and may do there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    /// Its addresses and its names, and nothing may be changed.
    Network,
    /// The same, and packet filters may be set there.
    NetworkWithFilters,
    /// Its processes, with the right to trace them: the node's own is pid 1.
    Processes,
}

/// What is known about a node's process from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeState {
    pub running: bool,
    pub frozen: bool,
    /// Changes with every start.
    pub started_at: String,
    /// Where it has ended.
    pub exit_code: Option<i64>,
    /// The id of its process on this very machine, where it can be reached from here.
    pub local_pid: Option<i32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    Stop,
    Continue,
    Kill,
}

/// The state letter of one thread, as in /proc: R, S, D, T …
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadState(pub char);

impl ThreadState {
    pub fn is_stopped(self) -> bool {
        self.0 == 'T'
    }
}

/// Where clusters come from. Nothing outside this room knows which one it is.
#[async_trait]
pub trait Runtime: Send + Sync {
    /// What clusters run on here, for the `environment` of a result.
    fn about(&self) -> BTreeMap<String, String>;
    /// Makes sure that the images are there that the clusters to come will
    /// need; returns the id of each, by its name. The same one may be named more
    /// than once.
    async fn prepare(
        &self,
        images: &[Image],
        progress: &dyn Progress,
    ) -> Result<BTreeMap<String, String>, ClusterError>;
    /// An empty cluster for one case.
    async fn create(&self, run: &Name, keep: bool) -> Result<Arc<dyn Cluster>, ClusterError>;
    /// The cluster of a run whose owner is dead, to heal what is left of it. What does
    /// not belong to that run, or to an owner that may live, is refused.
    async fn adopt(&self, run: &Name) -> Result<Arc<dyn Cluster>, ClusterError>;
    /// Removes what dead runs left behind.
    async fn sweep(&self, which: Leftovers) -> Result<Swept, ClusterError>;
    /// Why this cannot be had here, and what to do about it; None where it can.
    fn lacks(&self, _need: Need<'_>) -> Option<String> {
        None
    }
}

/// Which leftovers to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftovers {
    /// Of runs that are certainly over, and not kept on purpose: safe at any time.
    OfDeadRuns,
    /// Those, and what `--keep` kept.
    OfDeadRunsAndKept,
}

/// What became of the leftovers of dead runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    pub removed: Vec<String>,
    /// What cannot be removed, and why: no later run is held up by it.
    pub stuck: Vec<String>,
}

/// The processes of one case. Every call has a deadline of its own and names
/// what it waited for when it gives up.
#[async_trait]
pub trait Cluster: Send + Sync {
    /// Makes everything for a service but its process.
    async fn create_node(&self, node: &NodeSpec) -> Result<(), ClusterError>;
    /// Starts a service that was created, or has ended since, with the files it
    /// had then; it runs then, and may not be ready yet.
    async fn start(&self, node: &NodeSpec) -> Result<(), ClusterError>;
    /// Returns when the log of a started service has a line with this text,
    /// said since its last start.
    async fn await_said(&self, node: &Name, text: &str) -> Result<(), ClusterError>;
    /// Starts a process with its stdin and stdout in our hands.
    async fn start_attached(&self, node: &NodeSpec) -> Result<Console, ClusterError>;
    /// Where a service's port can be reached from here. This may change with
    /// every start and every [`connect`](Cluster::connect): ask again then.
    async fn address(&self, node: &Name, port: u16) -> Result<SocketAddr, ClusterError>;
    async fn signal(&self, node: &Name, signal: Signal) -> Result<(), ClusterError>;
    /// The state of every thread of the node's process; none where it has ended.
    async fn threads(&self, node: &Name) -> Result<Vec<ThreadState>, ClusterError>;
    /// Waits until the node's process has ended.
    async fn await_end(&self, node: &Name) -> Result<(), ClusterError> {
        not_here(&format!("wait for the end of {node}"))
    }
    /// SIGKILL; returns when the process has ended.
    async fn kill(&self, node: &Name) -> Result<(), ClusterError> {
        self.signal(node, Signal::Kill).await?;
        self.await_end(node).await
    }
    async fn state(&self, node: &Name) -> Result<NodeState, ClusterError> {
        not_here(&format!("look at {node}"))
    }
    /// Makes the node and its children stand still, whatever signals come but
    /// SIGKILL, which ends it.
    async fn freeze(&self, node: &Name) -> Result<(), ClusterError> {
        not_here(&format!("freeze {node}"))
    }
    /// Lets a frozen node go on; one that is not frozen is fine.
    async fn thaw(&self, node: &Name) -> Result<(), ClusterError> {
        not_here(&format!("thaw {node}"))
    }
    /// Removes a node or a helper, in whatever state it is, with all that it has
    /// stored, and returns when it is gone; one that is not there is fine.
    async fn discard(&self, node: &Name) -> Result<(), ClusterError> {
        not_here(&format!("remove {node}"))
    }
    /// Takes the node off the network; its own processes go on.
    async fn disconnect(&self, node: &Name) -> Result<(), ClusterError> {
        not_here(&format!("take {node} off the network"))
    }
    /// Puts the node on the network again, under its name. Its addresses, from
    /// here and for the other nodes, may be others than before.
    async fn connect(&self, node: &Name) -> Result<(), ClusterError> {
        not_here(&format!("put {node} on the network"))
    }
    /// How a proxy, which is a node, stands between its source and a server.
    async fn way(&self, proxy: &Name, server: &Endpoint) -> Result<Way, ClusterError> {
        not_here(&format!("lead to {} through {proxy}", server.node))
    }
    /// Where the other nodes find this one.
    async fn inner_address(&self, node: &Name) -> Result<IpAddr, ClusterError> {
        not_here(&format!("find {node} on the network"))
    }
    /// Starts a helper with its stdin and stdout in our hands; when the console
    /// is dropped, its stdin ends. It stays until it is discarded.
    async fn start_helper(&self, helper: &Helper) -> Result<Console, ClusterError> {
        not_here(&format!("start a helper beside {}", helper.beside))
    }
    /// Runs a helper to its end and removes it; returns what it printed. An
    /// exit code other than 0 is an error with its last lines.
    async fn run_helper(&self, helper: &Helper) -> Result<String, ClusterError> {
        not_here(&format!("run a helper beside {}", helper.beside))
    }
    /// Everything the node printed.
    async fn logs(&self, node: &Name) -> Result<String, ClusterError>;
    /// Removes everything of this case and makes sure that it is gone.
    async fn remove(&self) -> Result<(), ClusterError>;
    /// Leaves what there is to look at; returns in words where that is.
    async fn keep(&self) -> Result<String, ClusterError> {
        not_here("keep anything")
    }
}

fn not_here<T>(what: &str) -> Result<T, ClusterError> {
    Err(ClusterError::NotHere {
        what: what.to_owned(),
    })
}
