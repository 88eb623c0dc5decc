use crate::model::{Backend, Link, LockServers, Name};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What a scenario may refer to outside of its own file.
#[derive(Clone, Debug)]
pub enum Surroundings {
    /// The topologies there are, by name, and the folder that images of
    /// workers are looked for in.
    Here {
        topologies: BTreeMap<String, TopologyFacts>,
        folder: PathBuf,
    },
    /// A recorded run: its scenario was valid where it ran, and the topologies
    /// of then are not here to be asked.
    Recorded,
}

/// What a scenario has to know about a topology.
#[derive(Clone, Debug, Default)]
pub struct TopologyFacts {
    /// Those that are started.
    pub services: Vec<String>,
    /// Those that only lend their description to others: no worker may have
    /// such a name, and no fault befalls one.
    pub templates: Vec<String>,
    /// One for each kind of lock server that there is.
    pub workers: Vec<WorkerFacts>,
    /// From service to service.
    pub links: Vec<Link>,
    /// Replicas with their primaries.
    pub replicas: BTreeMap<String, String>,
    /// The service that the locks guard.
    pub resource: String,
}

impl TopologyFacts {
    /// Whether there is one lock server that leads the others.
    pub fn has_leader(&self) -> bool {
        let mut servers = self.workers.iter().filter_map(WorkerFacts::servers);
        servers.any(|servers| servers == LockServers::Etcd)
    }
}

/// What a scenario has to know about one template of workers.
#[derive(Clone, Debug, Default)]
pub struct WorkerFacts {
    /// What it speaks to the lock servers by default; None where that is a
    /// language of its own.
    pub backend: Option<Backend>,
    /// The services that it connects to.
    pub reaches: Vec<Name>,
}

impl WorkerFacts {
    pub fn servers(&self) -> Option<LockServers> {
        self.backend.map(Backend::servers)
    }
}
