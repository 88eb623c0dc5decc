//! The field on which the nemesis acts: the cluster, its nodes, and how they are seen from
//! inside.

use super::packet_filter::PacketFilters;
use super::witness::Witnesses;
use super::*;
use crate::cluster::NodeSpec;
use crate::model::LEADER;
use crate::services::{Questions, Reached, Visit};
use async_trait::async_trait;
use fencing_lock::Env;

const ELECTION_DEADLINE: Duration = Duration::from_secs(10);
const ASK_AGAIN: Duration = Duration::from_millis(100);

pub struct Field {
    pub cluster: Arc<dyn Cluster>,
    pub services: BTreeMap<Name, NodeSpec>,
    /// The services that can be asked something, with the port that is reached from here.
    pub servers: BTreeMap<Name, Server>,
    pub replicas: BTreeMap<Name, Name>,
    /// The services that were there before the run, and how they are asked.
    pub attached: BTreeMap<Name, Visit>,
    pub worker_clocks: Box<dyn WorkerClocks>,
    /// None if no node is led through a proxy, as in a load.
    links: Option<Links>,
    /// The servers that were given something to remember.
    pub(super) remembering: Mutex<BTreeSet<Name>>,
    pub(super) witnesses: Witnesses,
    pub(super) packet_filters: PacketFilters,
}

#[derive(Clone, Copy)]
pub struct Server {
    pub port: u16,
    pub answers: &'static dyn Questions,
}

/// Reads a worker's clocks from inside the worker.
#[async_trait]
pub trait WorkerClocks: Send + Sync {
    async fn read(&self, worker: &Name) -> Proof<ClockReading>;
}

/// The clocks that a process reports, and the time of that by a clock which nobody skews.
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
        links: Option<Links>,
    ) -> Field {
        Field {
            witnesses: Witnesses::new(Arc::clone(&cluster)),
            packet_filters: PacketFilters::new(Arc::clone(&cluster)),
            cluster,
            services,
            servers,
            replicas,
            attached: BTreeMap::new(),
            worker_clocks,
            links,
            remembering: Mutex::default(),
        }
    }

    #[cfg(test)]
    pub fn without_services(
        cluster: Arc<dyn Cluster>,
        worker_clocks: Box<dyn WorkerClocks>,
    ) -> Field {
        let (services, servers, replicas) = Default::default();
        Field::new(cluster, services, servers, replicas, worker_clocks, None)
    }

    pub fn links(&self) -> Proof<&Links> {
        self.links.as_ref().ok_or(UnprovenReason::NoLinks)
    }

    /// Returns a service as it was started, its links included.
    pub fn service(&self, node: &Name) -> Proof<NodeSpec> {
        let missing = || UnprovenReason::NotAService { node: node.clone() };
        self.services.get(node).cloned().ok_or_else(missing)
    }

    /// Returns the address at which a server answers us, and its protocol.
    pub async fn server(&self, node: &Name) -> Proof<Option<Reached>> {
        let Some(server) = self.servers.get(node) else {
            return Ok(None);
        };
        let played = self.cluster.played();
        Ok(Some(Reached {
            answers: server.answers,
            address: self.cluster.address(node, server.port).await?,
            env: played.map_or_else(Env::default, |played| played.env()),
        }))
    }

    /// Replaces `leader` with the name of the member that leads now.
    pub async fn with_leader_named(&self, fault: &Fault) -> Proof<Fault> {
        if fault.node().map(Name::as_str) != Some(LEADER) {
            return Ok(fault.clone());
        }
        Ok(fault.at(self.elected_leader().await?))
    }

    /// Waits for a leader, because an election may be under way.
    async fn elected_leader(&self) -> Proof<Name> {
        let give_up_at = Instant::now() + ELECTION_DEADLINE;
        loop {
            match self.leader().await {
                Err(reason) if Instant::now() >= give_up_at => return Err(reason),
                Err(_) => tokio::time::sleep(ASK_AGAIN).await,
                leader => return leader,
            }
        }
    }

    async fn leader(&self) -> Proof<Name> {
        let mut answers = Vec::new();
        for node in self.servers.keys() {
            let asked = async {
                match self.server(node).await? {
                    Some(server) => server.answers.leads(&server).await,
                    None => Ok(None),
                }
            };
            match asked.await {
                Ok(Some(true)) => return Ok(node.clone()),
                Ok(Some(false)) => answers.push(format!("{node} does not lead")),
                Ok(None) => {}
                Err(reason) => answers.push(format!("{node}: {reason}")),
            }
        }
        Err(UnprovenReason::NoLeader { answers })
    }

    /// Returns the services that a fault parts from each other. A member of a cluster may leave its
    /// clients when it is cut off from the others.
    pub(super) fn parted_services(&self, fault: &Fault) -> Vec<Name> {
        let (Fault::Links(fault), Some(links)) = (fault, &self.links) else {
            return Vec::new();
        };
        let links = links.gripped_by(fault).into_iter().map(|grip| grip.link);
        let parted = links.filter(|link| self.services.contains_key(&link.from));
        parted.flat_map(|link| [link.from, link.to]).collect()
    }

    /// Ends all helpers beside nodes that served faults and proofs.
    pub(super) async fn dismiss_helpers(&self) {
        self.witnesses.called.dismiss_all().await;
        self.packet_filters.called.dismiss_all().await;
    }
}
