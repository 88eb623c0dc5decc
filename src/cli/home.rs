use super::*;
use crate::cluster::topology::{self, Service, Topology, TopologyError};
use crate::model::ResourceKind;
use crate::run::RunOptions;
use crate::scenario::{Library, Surroundings, TopologyFacts, WorkerFacts};
use std::collections::BTreeMap;

/// The folder that scenarios and topologies are read from.
pub struct Home {
    folder: PathBuf,
}

impl Home {
    /// Returns the given folder, or else the nearest folder upwards that has scenarios/ and
    /// compose/.
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

    /// Returns the folder for the results of runs with these options.
    pub fn results_of(&self, options: &RunOptions) -> PathBuf {
        let given = options.results.clone();
        given.unwrap_or_else(|| self.results())
    }

    pub fn compose(&self) -> PathBuf {
        self.shown("compose")
    }

    pub fn topologies(&self) -> Result<BTreeMap<String, Topology>, TopologyError> {
        Topology::load_all(&self.compose())
    }

    /// Loads the resources that a case may choose in place of its topology's own.
    pub fn resources(&self) -> Result<BTreeMap<ResourceKind, Service>, TopologyError> {
        // Every topology has the other kind itself.
        let loaded = [ResourceKind::Postgres].map(|kind| {
            let path = self.compose().join("resources").join(format!("{kind}.yml"));
            Ok((kind, topology::load_service(&path, "resource")?))
        });
        loaded.into_iter().collect()
    }

    /// Loads the service that every proxy between nodes is started from.
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

    /// Returns a path inside, relative if this is the current folder, because that is shorter
    /// to read.
    fn shown(&self, name: &str) -> PathBuf {
        let here = std::env::current_dir().unwrap_or_default();
        if self.folder == here {
            PathBuf::from(name)
        } else {
            self.folder.join(name)
        }
    }
}

/// Returns the facts about a topology that scenarios are checked against.
fn facts(topology: &Topology) -> TopologyFacts {
    let names = |templates: bool| {
        let services = topology.services.iter();
        let services = services.filter(move |(_, service)| service.template == templates);
        services.map(|(name, _)| name.to_string()).collect()
    };
    let links = topology.links().flat_map(|(from, reached)| {
        reached
            .iter()
            .map(|server| Link::new(from.clone(), server.node.clone()))
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
