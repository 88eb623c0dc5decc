//! Where the nemesis acts: the cluster, what runs in it, and how it can be seen
//! from inside.

use super::links::Links;
use super::packet_filter::PacketFilters;
use super::readback::etcd;
use super::witness::Witnesses;
use crate::cluster::{Cluster, NodeSpec};
use crate::model::{Fault, LEADER, Name};
use async_trait::async_trait;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::time::Instant;

const ELECTION_DEADLINE: Duration = Duration::from_secs(10);
const ASK_AGAIN: Duration = Duration::from_millis(100);

pub struct Field {
    pub cluster: Arc<dyn Cluster>,
    /// The services by name, as they were started.
    pub services: BTreeMap<Name, NodeSpec>,
    /// Those that can be asked something, by the port that is reached from here.
    pub servers: BTreeMap<Name, Server>,
    /// From a replica to its primary.
    pub replicas: BTreeMap<Name, Name>,
    pub worker_clocks: Box<dyn WorkerClocks>,
    /// Once they are there.
    pub links: OnceLock<Links>,
    /// The Redis servers that were given something to remember.
    pub(super) remembering: Mutex<BTreeSet<Name>>,
    pub(super) witnesses: Witnesses,
    pub(super) packet_filters: PacketFilters,
}

/// What a node answers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    Redis { port: u16 },
    Etcd { port: u16 },
    Resource { port: u16 },
}

impl Server {
    pub fn port(self) -> u16 {
        match self {
            Server::Redis { port } | Server::Etcd { port } | Server::Resource { port } => port,
        }
    }
}

/// How a worker's clocks are read from inside.
#[async_trait]
pub trait WorkerClocks: Send + Sync {
    async fn read(&self, worker: &Name) -> Result<ClockReading, String>;
}

/// What a process says about its clocks, and when by a clock that nobody skews.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    pub raw_ns: u64,
    pub realtime_ns: i64,
    pub monotonic_ns: i64,
}

impl Field {
    pub fn new(
        cluster: Arc<dyn Cluster>,
        services: BTreeMap<Name, NodeSpec>,
        servers: BTreeMap<Name, Server>,
        replicas: BTreeMap<Name, Name>,
        worker_clocks: Box<dyn WorkerClocks>,
    ) -> Field {
        Field {
            witnesses: Witnesses::new(Arc::clone(&cluster)),
            packet_filters: PacketFilters::new(Arc::clone(&cluster)),
            cluster,
            services,
            servers,
            replicas,
            worker_clocks,
            links: OnceLock::new(),
            remembering: Mutex::default(),
        }
    }

    pub fn links(&self) -> Result<&Links, String> {
        let missing = || "the links of this cluster are not there".to_owned();
        self.links.get().ok_or_else(missing)
    }

    /// A service as it was started, its links included.
    pub fn service(&self, node: &Name) -> Result<NodeSpec, String> {
        let missing = || format!("{node} is not a service, so it cannot be started again");
        let mut service = self.services.get(node).ok_or_else(missing)?.clone();
        service.hosts = self.links()?.hosts_of(node);
        Ok(service)
    }

    /// Where a server answers us, and in which language.
    pub async fn server(&self, node: &Name) -> Result<Option<(Server, SocketAddr)>, String> {
        let Some(server) = self.servers.get(node) else {
            return Ok(None);
        };
        let address = self.cluster.address(node, server.port()).await;
        let address = address.map_err(|error| error.to_string())?;
        Ok(Some((*server, address)))
    }

    /// `leader` becomes the name of the member that leads now.
    pub async fn with_leader_named(&self, fault: &Fault) -> Result<Fault, String> {
        if fault.node().map(Name::as_str) != Some(LEADER) {
            return Ok(fault.clone());
        }
        Ok(fault.at(self.elected_leader().await?))
    }

    /// An election may be under way.
    async fn elected_leader(&self) -> Result<Name, String> {
        let give_up_at = Instant::now() + ELECTION_DEADLINE;
        loop {
            match self.leader().await {
                Err(reason) if Instant::now() >= give_up_at => return Err(reason),
                Err(_) => tokio::time::sleep(ASK_AGAIN).await,
                leader => return leader,
            }
        }
    }

    async fn leader(&self) -> Result<Name, String> {
        let mut reasons = Vec::new();
        for node in self.servers.keys() {
            let asked = async {
                match self.server(node).await? {
                    Some((Server::Etcd { .. }, address)) => etcd::leads(address).await.map(Some),
                    _ => Ok(None),
                }
            };
            match asked.await {
                Ok(Some(true)) => return Ok(node.clone()),
                Ok(Some(false)) => reasons.push(format!("{node} does not lead")),
                Ok(None) => {}
                Err(reason) => reasons.push(format!("{node}: {reason}")),
            }
        }
        Err(format!("no leader was found ({})", reasons.join("; ")))
    }

    /// Ends everything that stood beside nodes for faults and proofs.
    pub(super) async fn dismiss_helpers(&self) {
        self.witnesses.dismiss_all().await;
        self.packet_filters.dismiss_all().await;
    }
}
