use super::*;
use crate::builtin::Location;
use crate::cluster::topology::{self, Service, Topology, TopologyError};
use crate::model::ResourceKind;
use crate::report::shown::in_a_shell;
use crate::run::RunOptions;
use crate::scenario::{Library, Surroundings, TopologyFacts, WorkerFacts};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use strum::VariantArray;

/// The name of the folder with somebody's own files, in a repository of theirs.
const OWN: &str = "fencepost";

/// The scenarios and topologies that there are: a person's own, and below them those that the
/// program carries.
pub struct Home {
    /// Where own files are, or would be.
    folder: PathBuf,
    /// Whether it has everything itself, as a checkout of this project does. Then nothing that is
    /// built in is seen.
    is_whole: bool,
}

impl Home {
    /// Returns the given folder, or else the nearest one upwards: a checkout, or a folder with own
    /// files called `fencepost`. Without any, what is built in is enough. A folder of somebody else
    /// does not count unless it is given: a scenario can hold a command.
    pub fn find(given: Option<&Path>) -> Result<Home, Failure> {
        if let Some(folder) = given {
            return Home::at(folder).ok_or_else(|| {
                Failure::usage(format!(
                    "{} has neither scenarios/ nor compose/; leave --home away to use what is built in",
                    folder.display()
                ))
            });
        }
        let here = std::env::current_dir().map_err(Failure::harness)?;
        let trusted = [owner(&here), Some(0), Some(nix::unistd::geteuid().as_raw())];
        let is_trusted = |folder: &Path| trusted.contains(&owner(folder));
        let found = here.ancestors().find_map(|folder| {
            let own = folder.join(OWN);
            // A checkout of this project that is called so is no part of another folder.
            let is_own = (has_files(&own) || own.join("results").is_dir()) && !is_whole(&own);
            match is_whole(folder) && is_trusted(folder) {
                true => Some((folder.to_owned(), true)),
                false => (is_own && is_trusted(&own)).then_some((own, false)),
            }
        });
        let (folder, is_whole) = found.unwrap_or_else(|| (here.join(OWN), false));
        Ok(Home { folder, is_whole })
    }

    /// Returns the home to write the first files to: the given folder may have none yet.
    pub fn find_or_begin(given: Option<&Path>) -> Result<Home, Failure> {
        match given {
            Some(folder) => Ok(Home::at(folder).unwrap_or_else(|| Home {
                folder: folder.to_owned(),
                is_whole: false,
            })),
            None => Home::find(None),
        }
    }

    fn at(folder: &Path) -> Option<Home> {
        let own = folder.join(OWN);
        let folder = match has_files(folder) {
            true => folder.to_owned(),
            false => Some(own).filter(|own| has_files(own))?,
        };
        Some(Home {
            is_whole: is_whole(&folder),
            folder,
        })
    }

    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Returns whether these files would make a checkout of it, so that nothing that is built in is
    /// seen any more.
    pub fn becomes_whole<'a>(&self, files: impl Iterator<Item = &'a Path> + Clone) -> bool {
        let is_there = |name: &&str| {
            self.folder.join(name).is_dir() || files.clone().any(|file| file.starts_with(name))
        };
        !self.is_whole && PARTS.iter().all(is_there)
    }

    /// Returns the option that finds it again, with a space behind it; the default needs none.
    pub fn option(&self) -> String {
        match self.folder.ends_with(OWN) {
            true => String::new(),
            false => format!("--home {} ", in_a_shell(&self.shown("").to_string_lossy())),
        }
    }

    pub fn library(&self) -> Library {
        Library::new(self.folders("scenarios"))
    }

    pub fn results(&self) -> PathBuf {
        self.shown("results")
    }

    /// Returns the folder for the results of runs with these options.
    pub fn results_of(&self, options: &RunOptions) -> PathBuf {
        let given = options.results.clone();
        given.unwrap_or_else(|| self.results())
    }

    pub fn topologies(&self) -> Result<BTreeMap<String, Topology>, TopologyError> {
        Topology::load_all(self.folders("compose"))
    }

    /// Loads the resources that a case may choose in place of its topology's own.
    pub fn resources(&self) -> Result<BTreeMap<ResourceKind, Service>, TopologyError> {
        let loaded = ResourceKind::VARIANTS.iter().map(|&kind| {
            let path = self.file(&format!("compose/resources/{kind}.yml"));
            Ok((kind, topology::load_service(path, "resource")?))
        });
        loaded.collect()
    }

    /// Loads the service that every proxy between nodes is started from.
    pub fn toxiproxy(&self) -> Result<Service, TopologyError> {
        topology::load_service(self.file("toxiproxy/server.yml"), "toxiproxy")
    }

    pub fn surroundings(&self) -> Result<Surroundings, TopologyError> {
        let topologies = self.topologies()?;
        let topologies = topologies.iter();
        Ok(Surroundings::Here {
            topologies: topologies
                .map(|(name, topology)| (name.clone(), facts(topology)))
                .collect(),
            home: self.layers(),
        })
    }

    /// Returns the folders that a file is looked for in, the first of them first.
    pub fn layers(&self) -> Vec<Location> {
        let mut layers = vec![Location::from(self.shown(""))];
        layers.extend((!self.is_whole).then(|| Location::BuiltIn(PathBuf::new())));
        layers
    }

    /// Returns each folder of this name that there is.
    pub fn folders(&self, name: &str) -> Vec<Location> {
        let folders = self.layers().into_iter().map(|layer| layer.join(name));
        folders.filter(Location::is_folder).collect()
    }

    /// Returns the file that counts. If there is none, it is the one that would.
    pub fn file(&self, path: &str) -> Location {
        let mut files = self.layers().into_iter().map(|layer| layer.join(path));
        let found = files.find(Location::exists);
        found.unwrap_or_else(|| Location::from(self.shown(path)))
    }

    /// Returns a path inside, relative if it is below the current folder, because that is shorter
    /// to read.
    pub fn shown(&self, name: &str) -> PathBuf {
        let here = std::env::current_dir().unwrap_or_default();
        let folder = self.folder.strip_prefix(&here).unwrap_or(&self.folder);
        folder.join(name)
    }
}

fn has_files(folder: &Path) -> bool {
    ["scenarios", "compose"]
        .iter()
        .any(|name| folder.join(name).is_dir())
}

/// The folders of a checkout.
const PARTS: [&str; 3] = ["scenarios", "compose", "toxiproxy"];

fn owner(folder: &Path) -> Option<u32> {
    folder.metadata().ok().map(|about| about.uid())
}

fn is_whole(folder: &Path) -> bool {
    PARTS.iter().all(|name| folder.join(name).is_dir())
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
        resource_kind: topology.resource_kind,
        resource: topology.resource.node.to_string(),
        attached: BTreeMap::new(),
    }
}
