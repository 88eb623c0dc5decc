use super::exit::Failure;
use crate::cluster::topology::{self, Service, Topology, TopologyError};
use crate::model::Link;
use crate::scenario::{Library, Surroundings, TopologyFacts, WorkerFacts};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The folder that scenarios and topologies are read from.
pub struct Home {
    folder: PathBuf,
}

impl Home {
    /// The given folder, else the nearest one upwards that has both.
    pub fn find(given: Option<&Path>) -> Result<Home, Failure> {
        let is_home =
            |folder: &Path| folder.join("scenarios").is_dir() && folder.join("compose").is_dir();
        let found = match given {
            Some(folder) => is_home(folder).then(|| folder.to_owned()),
            None => {
                let here = std::env::current_dir().map_err(Failure::harness)?;
                here.ancestors()
                    .find(|folder| is_home(folder))
                    .map(Path::to_owned)
            }
        };
        match (found, given) {
            (Some(folder), _) => Ok(Home { folder }),
            (None, Some(folder)) => Err(Failure::usage(format!(
                "{} has no scenarios/ and compose/",
                folder.display()
            ))),
            (None, None) => Err(Failure::usage(
                "neither this folder nor one above it has scenarios/ and compose/; go there, or name it with --home DIR",
            )),
        }
    }

    pub fn library(&self) -> Library {
        Library::new(self.shown("scenarios"))
    }

    pub fn results(&self) -> PathBuf {
        self.shown("results")
    }

    pub fn compose(&self) -> PathBuf {
        self.shown("compose")
    }

    pub fn topologies(&self) -> Result<BTreeMap<String, Topology>, TopologyError> {
        Topology::load_all(&self.compose())
    }

    /// The service that every proxy between nodes is started from.
    pub fn toxiproxy(&self) -> Result<Service, TopologyError> {
        topology::load_service(&self.shown("toxiproxy").join("server.yml"), "toxiproxy")
    }

    pub fn surroundings(&self) -> Result<Surroundings, TopologyError> {
        let topologies = self.topologies()?;
        let topologies = topologies.iter();
        Ok(Surroundings::Here {
            topologies: topologies
                .map(|(name, topology)| (name.clone(), facts(topology)))
                .collect(),
            folder: self.folder.clone(),
        })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A path inside, relative where that is shorter to read.
    fn shown(&self, name: &str) -> PathBuf {
        let here = std::env::current_dir().unwrap_or_default();
        match self.folder == here {
            true => PathBuf::from(name),
            false => self.folder.join(name),
        }
    }
}

/// What scenarios may know of a topology.
fn facts(topology: &Topology) -> TopologyFacts {
    let names = |templates: bool| {
        let services = topology.services.iter();
        let services = services.filter(move |(_, service)| service.template == templates);
        services.map(|(name, _)| name.to_string()).collect()
    };
    let links = topology.links().flat_map(|(from, reached)| {
        reached.iter().map(|server| Link {
            from: from.clone(),
            to: server.node.clone(),
        })
    });
    let workers = topology.workers.iter().map(|worker| {
        let reached = topology.reached_by(worker).into_iter();
        WorkerFacts {
            backend: worker.backend,
            reaches: reached.map(|server| server.node).collect(),
        }
    });
    let replicas = topology.replicas().into_iter();
    let replicas = replicas.map(|(replica, primary)| (replica.into(), primary.into()));
    TopologyFacts {
        services: names(false),
        templates: names(true),
        workers: workers.collect(),
        links: links.collect(),
        replicas: replicas.collect(),
        resource: topology.resource.node.to_string(),
    }
}
