//! Where the services and workers of a case live. Everything outside sees the
//! [`Cluster`] trait; `docker/` is the only folder that names the Docker client.

pub mod docker;
mod error;
mod last_lines;
mod owner;
mod start;
pub mod topology;

pub use error::ClusterError;
pub use last_lines::LastLines;
pub use owner::Owner;
pub use start::start_services;
pub use topology::{Topology, TopologyError};

use crate::progress::Progress;
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use tokio::io::AsyncWrite;
use tokio::sync::mpsc;

/// One process to start: a service of the topology, or a worker.
#[derive(Clone, Debug)]
pub struct NodeSpec {
    /// Its name on the network, and in every message.
    pub name: String,
    pub image: String,
    pub command: Vec<String>,
    pub environment: BTreeMap<String, String>,
    pub ports: Vec<topology::Port>,
    /// The log line that says it is ready; without one, running is ready.
    pub ready: Option<String>,
    /// The log line at which those that come after it are started; without one,
    /// running is enough.
    pub started: Option<String>,
    /// Started after the services without this.
    pub after_others: bool,
}

/// A process's stdin and stdout: a control channel that no network fault cuts.
pub struct Console {
    pub stdin: Pin<Box<dyn AsyncWrite + Send>>,
    /// Ends when the process does.
    pub lines: mpsc::Receiver<ConsoleLine>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ConsoleLine {
    Out(String),
    Err(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    Stop,
    Continue,
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
    /// Makes sure that everything the topology needs is there; returns what it
    /// found, for the `environment` of a result.
    async fn prepare(
        &self,
        topology: &Topology,
        progress: &dyn Progress,
    ) -> Result<BTreeMap<String, String>, ClusterError>;
    /// An empty cluster for one case.
    async fn create(&self, run: &str, keep: bool) -> Result<Arc<dyn Cluster>, ClusterError>;
    /// Removes what dead runs left behind; returns what it removed.
    async fn sweep(&self) -> Result<Vec<String>, ClusterError>;
}

/// The processes of one case. Every call has a deadline of its own and names
/// what it waited for when it gives up.
#[async_trait]
pub trait Cluster: Send + Sync {
    /// Makes everything for a service but its process.
    async fn create_node(&self, node: &NodeSpec) -> Result<(), ClusterError>;
    /// Starts a service that was created; it runs then, and may not be ready yet.
    async fn start(&self, node: &NodeSpec) -> Result<(), ClusterError>;
    /// Returns when the log of a started service has a line with this text.
    async fn await_said(&self, node: &str, text: &str) -> Result<(), ClusterError>;
    /// Starts a process with its stdin and stdout in our hands.
    async fn start_attached(&self, node: &NodeSpec) -> Result<Console, ClusterError>;
    /// Where a service's port can be reached from here.
    async fn address(&self, node: &str, port: u16) -> Result<SocketAddr, ClusterError>;
    async fn signal(&self, node: &str, signal: Signal) -> Result<(), ClusterError>;
    /// The state of every thread of the node's process; none where it has ended.
    async fn threads(&self, node: &str) -> Result<Vec<ThreadState>, ClusterError>;
    /// Everything the node printed.
    async fn logs(&self, node: &str) -> Result<String, ClusterError>;
    /// Removes everything of this case and makes sure that it is gone.
    async fn remove(&self) -> Result<(), ClusterError>;
}
