use super::attach::AttachedFacts;
use crate::builtin::Location;
use crate::model::{Link, Name, ResourceKind};
use crate::services::{Backend, LockServers};
use std::collections::BTreeMap;

/// Everything that a scenario may refer to outside of its own file.
#[derive(Clone, Debug)]
pub enum Surroundings {
    /// The topologies by name, and the folders in which images of workers are looked for.
    Here {
        topologies: BTreeMap<String, TopologyFacts>,
        home: Vec<Location>,
    },
    /// A recorded run: its scenario was valid where it ran, and its topologies are not known
    /// here.
    Recorded,
}

#[derive(Clone, Debug, Default)]
pub struct TopologyFacts {
    /// The services that are started.
    pub services: Vec<String>,
    /// The services that only lend their description to others: no worker may have such a name,
    /// and no fault affects one.
    pub templates: Vec<String>,
    /// One for each kind of lock server in the topology.
    pub workers: Vec<WorkerFacts>,
    pub links: Vec<Link>,
    pub replicas: BTreeMap<String, String>,
    /// The service that the locks guard.
    pub resource: String,
    pub resource_kind: ResourceKind,
    /// The services that are there already.
    pub attached: BTreeMap<String, AttachedFacts>,
}

impl TopologyFacts {
    /// Returns whether there is one lock server that leads the others.
    pub fn has_leader(&self) -> bool {
        let mut servers = self.workers.iter().filter_map(WorkerFacts::servers);
        servers.any(|servers| servers.program.is_cluster)
    }
}

#[derive(Clone, Debug, Default)]
pub struct WorkerFacts {
    /// The lock service that it uses by default; None if it has a protocol of its own.
    pub backend: Option<Backend>,
    pub reaches: Vec<Name>,
}

impl WorkerFacts {
    pub fn servers(&self) -> Option<LockServers> {
        self.backend.map(Backend::servers)
    }
}
