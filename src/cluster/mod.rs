//! The home of the services and workers of a case: containers (`docker/`) or processes of this
//! machine (`local/`). Everything outside sees the [`Cluster`] trait; `docker/` is the only folder
//! that names the Docker client.

mod attached;
mod console;
pub mod docker;
mod error;
#[cfg(test)]
pub mod fake;
mod last_lines;
mod lines;
pub mod local;
mod need;
mod owner;
mod played;
mod proc_stat;
mod proxy_route;
mod start;
pub mod topology;

pub use attached::{FoundServer, find_server};
pub use console::{Console, ConsoleLine, Stdin};
pub use error::{ClusterError, ClusterResult};
pub use last_lines::LastLines;
pub use need::Need;
pub use owner::Owner;
pub use played::PlayedCluster;
pub use proxy_route::ProxyRoute;
pub use start::start_services;
pub use topology::{OWN_IMAGE, PACKET_FILTER_IMAGE, Topology, TopologyError};

use crate::builtin::Location;
use crate::model::Name;
use crate::progress::Progress;
use async_trait::async_trait;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use topology::Endpoint;

/// One process to start: a service of the topology, or a worker.
#[derive(Clone, Debug)]
pub struct NodeSpec {
    /// Its name on the network, and in every message.
    pub name: Name,
    pub image: String,
    pub command: Vec<String>,
    pub environment: BTreeMap<String, String>,
    /// The settings of its environment that hold addresses. Other settings are never changed, even
    /// if they look like an address.
    pub addressed: Vec<String>,
    pub ports: Vec<topology::Port>,
    /// The log line that says it is ready; without one it is ready as soon as it runs.
    pub ready: Option<String>,
    /// The log line at which the nodes that come after it are started; without one they are started
    /// as soon as it runs.
    pub started: Option<String>,
    /// It is started after the services without this.
    pub after_others: bool,
    /// The command begins with its program; otherwise the image's own program comes before it.
    pub is_whole_command: bool,
    /// Names that lead elsewhere for this node than for the others.
    pub hosts: BTreeMap<Name, SocketAddr>,
    /// The rights of its container; a process of this machine has those of this program.
    pub rights: Rights,
}

impl NodeSpec {
    /// Creates a process and nothing more: no ports, no names, only the least rights.
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
            is_whole_command: false,
            hosts: BTreeMap::new(),
            rights: Rights::default(),
        }
    }
}

/// The rights of a container beyond the least. The least is the default: a user that nobody else
/// is, and no place to write to that stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// Another user than the default one.
    pub user: Option<String>,
    /// It may write wherever its user may.
    pub writes_anywhere: bool,
    /// Folders that it may write to, kept as long as the node is.
    pub volumes: Vec<String>,
}

/// An image that a run needs, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The name that Compose files and helpers use.
    pub name: String,
    /// The folder with its Dockerfile, if it is built. Without one it is fetched, unless it is the
    /// image of this program itself.
    pub build: Option<Location>,
}

impl Image {
    /// Returns the image of a folder anywhere: two folders do not share one.
    pub fn of_folder(path: &Path) -> Image {
        let last = path.file_name().unwrap_or_default().to_string_lossy();
        let letters = last.to_lowercase();
        let letters = letters.chars().filter(|c| c.is_ascii_alphanumeric());
        let letters: String = letters.collect();
        let hash = format!("{:x}", Sha256::digest(path.as_os_str().as_encoded_bytes()));
        Image {
            name: format!("fencepost/worker-{letters}{}:latest", &hash[..8]),
            build: Some(path.into()),
        }
    }

    /// Returns the image that a scenario names: a folder by its whole path; with a tag an image;
    /// else the folder of the home that it is built from.
    pub fn named(name: &str, home: &[Location]) -> Image {
        if name.starts_with('/') {
            return Image::of_folder(Path::new(name));
        }
        if name.contains(':') {
            return Image {
                name: name.to_owned(),
                build: None,
            };
        }
        let mut folders = home.iter().map(|layer| layer.join(name));
        let with_recipe = folders.find(|folder| folder.join("Dockerfile").is_file());
        Image {
            name: format!("fencepost/{name}:latest"),
            // Where there is none, the build says so.
            build: with_recipe.or_else(|| Some(home.first()?.join(name))),
        }
    }
}

/// In the place of an image: the node is a program of this machine, and its command is to be run
/// as it is, in the folder and the environment of this program.
pub const COMMAND_IMAGE: &str = "fencepost/command:here";

/// A process beside a node: it sees what the node sees, for a fault or its proof.
#[derive(Clone, Debug)]
pub struct Helper {
    /// Its own name, which removal and messages use.
    pub name: Name,
    pub image: String,
    pub command: Vec<String>,
    pub beside: Name,
    pub shares: Shared,
}

/// The part of a node that a helper shares, and what the helper may do there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    /// The node's addresses and names; the helper may change nothing.
    Network,
    /// The same, and the helper may set packet filters there.
    NetworkWithFilters,
    /// The node's processes, with the right to trace them: the node's own is pid 1.
    Processes,
}

/// The state of a node's process, as seen from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeState {
    pub running: bool,
    pub frozen: bool,
    /// A value that changes with every start.
    pub started_at: String,
    pub exit_code: Option<i64>,
    /// The id of its process on this very machine, if it can be reached from here.
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

/// A maker of clusters. Nothing outside this folder knows which kind it is.
#[async_trait]
pub trait Runtime: Send + Sync {
    /// Returns what clusters run on here, for the `environment` of a result.
    fn about(&self) -> BTreeMap<String, String>;
    /// Makes sure that the images are there that the clusters to come will need; returns the id of
    /// each, by its name. The same image may be named more than once.
    async fn prepare(
        &self,
        images: &[Image],
        progress: &dyn Progress,
    ) -> ClusterResult<BTreeMap<String, String>>;
    async fn create(&self, run: &Name, keep: bool) -> ClusterResult<Arc<dyn Cluster>>;
    /// Returns the cluster of a run whose owner is dead, to heal what is left of it. Refuses
    /// objects that belong to another run, or to an owner that may live.
    async fn adopt(&self, run: &Name) -> ClusterResult<Arc<dyn Cluster>>;
    async fn sweep(&self, which: Leftovers) -> ClusterResult<SweepResult>;
    /// Returns why a need cannot be met here, and what to do about it; None if it can.
    fn lacks(&self, _need: Need<'_>) -> Option<String> {
        None
    }
    /// Returns whether nothing here is real, the time included. Then a case makes its own cluster.
    fn simulates(&self) -> bool {
        false
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftovers {
    /// Leftovers of runs that are certainly over and were not kept on purpose: safe at any time.
    OfDeadRuns,
    /// Those, and the clusters that `--keep` kept.
    OfDeadRunsAndKept,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepResult {
    pub removed: Vec<String>,
    /// The things that cannot be removed, and why; they do not disturb later runs.
    pub stuck: Vec<String>,
}

/// The processes of one case. Every call has a deadline of its own, and names what it waited for
/// when it gives up.
#[async_trait]
pub trait Cluster: Send + Sync {
    /// Makes everything for a service except its process.
    async fn create_node(&self, node: &NodeSpec) -> ClusterResult;
    /// Starts a service that was created, or has ended since, with the files that it had then.
    /// Afterwards it runs, and may not be ready yet.
    async fn start(&self, node: &NodeSpec) -> ClusterResult;
    /// Waits until the log of a started service has a line with this text, printed since its last
    /// start.
    async fn await_said(&self, node: &Name, text: &str) -> ClusterResult;
    /// Starts a process and returns its console.
    async fn start_attached(&self, node: &NodeSpec) -> ClusterResult<Console>;
    /// Returns the address at which a service's port is reached from here. It may change with every
    /// start and every [`connect`](Cluster::connect): ask again then.
    async fn address(&self, node: &Name, port: u16) -> ClusterResult<SocketAddr>;
    /// Makes a server that is there already reachable for the nodes, under this name. It is never
    /// removed, and nothing happens to its process unless it may be faulted.
    async fn attach(&self, name: &Name, _server: &FoundServer) -> ClusterResult {
        not_here(&format!("attach {name}"))
    }
    async fn signal(&self, node: &Name, signal: Signal) -> ClusterResult;
    /// Returns the state of every thread of the node's process; none if it has ended.
    async fn threads(&self, node: &Name) -> ClusterResult<Vec<ThreadState>>;
    async fn await_end(&self, node: &Name) -> ClusterResult {
        not_here(&format!("wait for the end of {node}"))
    }
    /// Sends SIGKILL; returns when the process has ended.
    async fn kill(&self, node: &Name) -> ClusterResult {
        self.signal(node, Signal::Kill).await?;
        self.await_end(node).await
    }
    async fn state(&self, node: &Name) -> ClusterResult<NodeState> {
        not_here(&format!("look at {node}"))
    }
    /// Freezes the node and its children. No signal wakes them, and only SIGKILL ends them.
    async fn freeze(&self, node: &Name) -> ClusterResult {
        not_here(&format!("freeze {node}"))
    }
    /// Lets a frozen node go on; it is fine if the node is not frozen.
    async fn thaw(&self, node: &Name) -> ClusterResult {
        not_here(&format!("thaw {node}"))
    }
    /// Removes a node or a helper, in any state, with all that it has stored, and returns when it
    /// is gone; it is fine if it is not there.
    async fn discard(&self, node: &Name) -> ClusterResult {
        not_here(&format!("remove {node}"))
    }
    /// Takes the node off the network; its own processes go on.
    async fn disconnect(&self, node: &Name) -> ClusterResult {
        not_here(&format!("take {node} off the network"))
    }
    /// Puts the node on the network again, under its name. Its addresses, from here and for the
    /// other nodes, may have changed.
    async fn connect(&self, node: &Name) -> ClusterResult {
        not_here(&format!("put {node} on the network"))
    }
    /// Returns the route through a proxy, which is a node, to a server.
    async fn way(&self, proxy: &Name, server: &Endpoint) -> ClusterResult<ProxyRoute> {
        not_here(&format!("lead to {} through {proxy}", server.node))
    }
    /// Returns the address at which the other nodes find this one.
    async fn inner_address(&self, node: &Name) -> ClusterResult<IpAddr> {
        not_here(&format!("find {node} on the network"))
    }
    /// Starts a helper and returns its console; when the console is dropped, the helper's stdin
    /// ends. The helper stays until it is discarded.
    async fn start_helper(&self, helper: &Helper) -> ClusterResult<Console> {
        not_here(&format!("start a helper beside {}", helper.beside))
    }
    /// Runs a helper to its end and removes it; returns what it printed. An exit code other than 0
    /// is an error with its last lines.
    async fn run_helper(&self, helper: &Helper) -> ClusterResult<String> {
        not_here(&format!("run a helper beside {}", helper.beside))
    }
    /// Returns the ways to the nodes, if they are played in this process.
    fn played(&self) -> Option<&dyn PlayedCluster> {
        None
    }
    async fn logs(&self, node: &Name) -> ClusterResult<String>;
    /// Removes everything of this case and makes sure that it is gone.
    async fn remove(&self) -> ClusterResult;
    /// Keeps everything for a person to look at; returns in words where it is.
    async fn keep(&self) -> ClusterResult<String> {
        not_here("keep anything")
    }
}

fn not_here<T>(what: &str) -> ClusterResult<T> {
    Err(ClusterError::NotHere {
        what: what.to_owned(),
    })
}

/// Finds a program on the PATH.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|candidate| candidate.is_file())
}
