use super::exit::Failure;
use crate::cluster::{Topology, TopologyError};
use crate::scenario::{Library, Scenario, Surroundings, TopologyFacts};
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

    pub fn topologies(&self) -> Result<BTreeMap<String, Topology>, TopologyError> {
        Topology::load_all(&self.shown("compose"))
    }

    pub fn surroundings(&self) -> Result<Surroundings, TopologyError> {
        Ok(surroundings(&self.topologies()?))
    }

    /// A scenario with the topology it runs on.
    pub fn load(&self, name: &str) -> Result<(Scenario, Topology), Failure> {
        let mut topologies = self.topologies()?;
        let scenario = self.library().load(name, &surroundings(&topologies))?;
        let topology = topologies.remove(&scenario.topology);
        let topology = topology.ok_or_else(|| Failure::harness("the topology vanished"))?;
        Ok((scenario, topology))
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

fn surroundings(topologies: &BTreeMap<String, Topology>) -> Surroundings {
    let facts = |topology: &Topology| TopologyFacts {
        services: topology.services.keys().cloned().collect(),
        backend: topology
            .worker()
            .environment
            .get("FENCEPOST_BACKEND")
            .and_then(|word| word.parse().ok()),
    };
    let all = topologies.iter();
    Surroundings::Topologies(
        all.map(|(name, topology)| (name.clone(), facts(topology)))
            .collect(),
    )
}
