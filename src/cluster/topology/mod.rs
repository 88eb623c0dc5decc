//! Topologies are Compose files under `compose/`. They alone define what is started, and plain
//! `docker compose` can start them too. Only a subset is read (compose/README.md lists it);
//! anything else is refused by name.

mod attach;
mod check;
mod read;
#[cfg(test)]
mod tests;

use super::{Image, NodeSpec, Rights};
use crate::builtin::Location;
use crate::model::{AttachedServer, Name, ResourceKind};
use crate::services::Backend;
use crate::yaml::{self, At, InvalidFile, Node, Report};
use bounded_io::files::Links;
use std::collections::BTreeMap;
use std::{fmt, io};

/// The image of this program: the running executable and the libraries it maps.
pub const OWN_IMAGE: &str = "fencepost/self:latest";
/// The image with the packet filters that drop and lose packets, for helpers with
/// [`Shared::NetworkWithFilters`](super::Shared).
pub const PACKET_FILTER_IMAGE: &str = "fencepost/netfilter:1.8";
/// The name of the template of workers; further templates add a dash and a word.
const WORKER: &str = "worker";
/// The setting for the addresses of a worker's lock servers.
pub const ENDPOINTS: &str = "FENCEPOST_ENDPOINTS";
/// The setting for the address of its resource.
pub const RESOURCE: &str = "FENCEPOST_RESOURCE";
/// The setting for its own address, at which it serves metrics.
pub const METRICS: &str = "FENCEPOST_METRICS";

#[derive(Clone, Debug)]
pub struct Topology {
    /// The folder of the file: build contexts are relative to it.
    pub folder: Location,
    pub services: BTreeMap<Name, Service>,
    pub resource: Endpoint,
    pub resource_kind: ResourceKind,
    /// The templates of workers, one for each kind of lock server; the one that is just called
    /// `worker` comes first.
    pub workers: Vec<WorkerTemplate>,
}

#[derive(Clone, Debug)]
pub struct WorkerTemplate {
    pub name: Name,
    pub service: Service,
    /// From its FENCEPOST_BACKEND; None if it has a protocol of its own.
    pub backend: Option<Backend>,
    pub lock_servers: Vec<Endpoint>,
}

/// A service and its port on the cluster's network: `redis:6379`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub node: Name,
    pub port: u16,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.node, self.port)
    }
}

#[derive(Clone, Debug)]
pub struct Service {
    pub image: Image,
    pub command: Vec<String>,
    pub environment: BTreeMap<String, String>,
    pub ports: Vec<Port>,
    /// From the label `fencepost.ready`: the log line that says it is ready.
    pub ready: Option<String>,
    /// From the label `fencepost.started`: the log line at which the services that depend on it are
    /// started.
    pub started: Option<String>,
    /// From the label `fencepost.links`: the servers that the service itself connects to.
    pub links: Vec<Endpoint>,
    /// From the label `fencepost.replica_of`: the service whose data it copies, and whose place it
    /// can take.
    pub replica_of: Option<Name>,
    /// From the label `fencepost.pools`: the lock server whose sessions it shares out, and that is
    /// watched in its place.
    pub pools: Option<Endpoint>,
    /// From `depends_on`: the services that are started first.
    pub after: Vec<At<String>>,
    /// From `user`, `read_only` and `volumes`.
    pub rights: Rights,
    /// It is in a profile: a template that is started only when asked for by name.
    pub template: bool,
    /// It is there already, and never started.
    pub attached: Option<AttachedServer>,
}

impl Service {
    /// Returns the node that this service, or a worker from this template, is started as.
    pub fn node(&self, name: &Name) -> NodeSpec {
        let addressed = if self.template {
            [ENDPOINTS, RESOURCE, METRICS].map(str::to_owned).into()
        } else {
            // Settings that a run adds later hold no addresses.
            self.environment.keys().cloned().collect()
        };
        NodeSpec {
            name: name.clone(),
            image: self.image.name.clone(),
            command: self.command.clone(),
            environment: self.environment.clone(),
            addressed,
            ports: self.ports.clone(),
            ready: self.ready.clone(),
            started: self.started.clone(),
            after_others: !self.after.is_empty(),
            is_whole_command: false,
            hosts: BTreeMap::new(),
            rights: self.rights.clone(),
        }
    }
}

/// A port published on loopback. Host port 0 lets the system choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    pub host: u16,
    pub container: u16,
}

#[derive(Debug, thiserror::Error)]
pub enum TopologyError {
    #[error("cannot read {path}: {source}")]
    Unreadable { path: Location, source: io::Error },
    #[error(transparent)]
    Invalid(#[from] InvalidFile),
}

impl Topology {
    pub fn load(path: impl Into<Location>) -> Result<Topology, TopologyError> {
        let path = path.into();
        let text = text_of(&path)?;
        Ok(Topology::parse(path, &text)?)
    }

    pub fn parse(path: impl Into<Location>, text: &str) -> Result<Topology, InvalidFile> {
        parse(&path.into(), text, |root, folder, report| {
            check::topology(read::services(root, folder, report)?, folder, report)
        })
    }

    /// Puts another resource in the place of its own, under the same name.
    pub fn with_resource(mut self, kind: ResourceKind, service: &Service) -> Topology {
        let node = &self.resource.node;
        let first = service.ports.first();
        let port = first.map_or(self.resource.port, |port| port.container);
        let url = kind.url(format_args!("{node}:{port}"));
        for template in &mut self.workers {
            let setting = (RESOURCE.to_owned(), url.clone());
            template.service.environment.extend([setting]);
        }
        self.services.insert(node.clone(), service.clone());
        self.resource.port = port;
        self.resource_kind = kind;
        self
    }

    /// Returns the template that a worker with this lock is started from: the first one, if none is
    /// for its kind of servers.
    pub fn worker_for(&self, backend: Backend) -> &WorkerTemplate {
        let chosen = backend.choose(&self.workers, |worker| worker.backend);
        chosen.expect("every topology has a template")
    }

    /// Loads every topology of these folders, by name. The first folder that has a name counts.
    pub fn load_all<L: Into<Location>>(
        folders: impl IntoIterator<Item = L>,
    ) -> Result<BTreeMap<String, Topology>, TopologyError> {
        let mut all = BTreeMap::new();
        let mut complaints = Vec::new();
        for folder in folders {
            let folder = folder.into();
            let names = folder.names().map_err(unreadable(&folder))?;
            for name in names {
                if all.contains_key(&name) {
                    continue;
                }
                match Topology::load(folder.join(format!("{name}.yml"))) {
                    Ok(topology) => drop(all.insert(name, topology)),
                    Err(TopologyError::Invalid(invalid)) => complaints.extend(invalid.complaints),
                    Err(unreadable) => return Err(unreadable),
                }
            }
        }
        if complaints.is_empty() {
            Ok(all)
        } else {
            Err(InvalidFile { complaints }.into())
        }
    }

    /// Returns the images of all its services, some of them more than once.
    pub fn images(&self) -> impl Iterator<Item = &Image> {
        let services = self.services.values();
        let services = services.filter(|service| service.attached.is_none());
        services.map(|service| &service.image)
    }

    /// Returns whether its lock servers run in no container and on no machine.
    pub fn is_only_simulated(&self) -> bool {
        let mut backends = self.workers.iter().filter_map(|worker| worker.backend);
        backends.any(|backend| backend.servers().program.is_only_simulated())
    }

    /// Returns the image that faults of packets need; a run without such faults does not need it.
    pub fn packet_filter(&self) -> Image {
        Image {
            name: PACKET_FILTER_IMAGE.to_owned(),
            build: recipe(&self.folder, "images/netfilter"),
        }
    }

    /// Returns the services that every scenario on this topology starts.
    pub fn started(&self) -> impl Iterator<Item = (&Name, &Service)> {
        let services = self.services.iter();
        services.filter(|(_, service)| !service.template && service.attached.is_none())
    }

    /// Returns the servers that a worker from this template connects to.
    pub fn reached_by(&self, worker: &WorkerTemplate) -> Vec<Endpoint> {
        let resource = std::iter::once(&self.resource);
        worker
            .lock_servers
            .iter()
            .chain(resource)
            .cloned()
            .collect()
    }

    /// Returns the lock server itself, if this is one that only stands before it.
    pub fn behind(&self, server: &Endpoint) -> Endpoint {
        let service = self.services.get(&server.node);
        let pooled = service.and_then(|service| service.pools.as_ref());
        pooled.unwrap_or(server).clone()
    }

    pub fn replicas(&self) -> BTreeMap<Name, Name> {
        let started = self.started();
        let replicas = started.filter_map(|(name, service)| {
            let primary = service.replica_of.clone()?;
            Some((name.clone(), primary))
        });
        replicas.collect()
    }

    /// Returns the servers that the services connect to by themselves, without the services that
    /// connect to none.
    pub fn links(&self) -> impl Iterator<Item = (&Name, &[Endpoint])> {
        let linked = self.started().filter(|(_, s)| !s.links.is_empty());
        linked.map(|(name, service)| (name, service.links.as_slice()))
    }
}

/// Loads one service of a file that is not a topology: the proxies have such a file.
pub fn load_service(path: impl Into<Location>, name: &str) -> Result<Service, TopologyError> {
    let path = path.into();
    let text = text_of(&path)?;
    Ok(parse(&path, &text, |root, folder, report| {
        let drafts = read::services(root, folder, report)?;
        check::service(drafts, name, root, report)
    })?)
}

/// Returns the folder with the Dockerfile that a topology of this folder names: its own, or else
/// one that the program carries. So a topology that was copied out still finds its images.
fn recipe(folder: &Location, context: &str) -> Option<Location> {
    let carried = Location::BuiltIn("compose".into());
    let mut places = [folder, &carried]
        .map(|folder| folder.join(context))
        .into_iter();
    places.find(|place| place.join("Dockerfile").is_file())
}

fn text_of(path: &Location) -> Result<String, TopologyError> {
    path.text(Links::Follow).map_err(unreadable(path))
}

fn unreadable(path: &Location) -> impl Fn(io::Error) -> TopologyError {
    let path = path.clone();
    move |source| TopologyError::Unreadable {
        path: path.clone(),
        source,
    }
}

fn parse<T>(
    path: &Location,
    text: &str,
    read: impl FnOnce(&Node, &Location, &mut Report) -> Option<T>,
) -> Result<T, InvalidFile> {
    let shown = path.shown();
    let root = yaml::parse(&shown, text)?;
    let mut report = Report::new(&shown);
    let value = read(&root, &path.parent(), &mut report);
    report.finish(value)
}
