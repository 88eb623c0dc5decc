//! Topologies are Compose files under `compose/`. They alone define what is started, and plain
//! `docker compose` can start them too. Only a subset is read (compose/README.md lists it);
//! anything else is refused by name.

mod check;
mod read;
#[cfg(test)]
mod tests;

use super::{Image, NodeSpec, Rights};
use crate::model::{Name, ResourceKind};
use crate::services::Backend;
use crate::yaml::{self, At, InvalidFile, Node, Report};
use bounded_io::files;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// The image of this program: the running executable and the libraries it maps.
pub const OWN_IMAGE: &str = "fencepost/self:latest";
/// The image with the packet filters that drop and lose packets, for helpers with
/// [`Shared::NetworkWithFilters`](super::Shared).
pub const PACKET_FILTER_IMAGE: &str = "fencepost/netfilter:1.8";
/// The name of the template of workers; further templates add a dash and a word.
const WORKER: &str = "worker";
/// The setting for the addresses of a worker's lock servers.
const ENDPOINTS: &str = "FENCEPOST_ENDPOINTS";
/// The setting for the address of its resource.
pub const RESOURCE: &str = "FENCEPOST_RESOURCE";
/// The setting for its own address, at which it serves metrics.
pub const METRICS: &str = "FENCEPOST_METRICS";

#[derive(Clone, Debug)]
pub struct Topology {
    /// The folder of the file: build contexts are relative to it.
    pub folder: PathBuf,
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
    #[error("cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Invalid(#[from] InvalidFile),
}

impl Topology {
    pub fn load(path: &Path) -> Result<Topology, TopologyError> {
        Ok(Topology::parse(path, &text_of(path)?)?)
    }

    pub fn parse(path: &Path, text: &str) -> Result<Topology, InvalidFile> {
        parse(path, text, |root, folder, report| {
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

    /// Loads every topology of a folder, by name.
    pub fn load_all(folder: &Path) -> Result<BTreeMap<String, Topology>, TopologyError> {
        let unreadable = |source| TopologyError::Unreadable {
            path: folder.to_owned(),
            source,
        };
        let mut all = BTreeMap::new();
        let mut complaints = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if path.extension().is_some_and(|ext| ext == "yml")
                && let Some(stem) = path.file_stem()
            {
                match Topology::load(&path) {
                    Ok(topology) => {
                        all.insert(stem.to_string_lossy().into_owned(), topology);
                    }
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
        self.services.values().map(|service| &service.image)
    }

    /// Returns the image that faults of packets need; a run without such faults does not need it.
    pub fn packet_filter(&self) -> Image {
        Image {
            name: PACKET_FILTER_IMAGE.to_owned(),
            build: Some(self.folder.join("images/netfilter")),
        }
    }

    /// Returns the services that every scenario on this topology starts.
    pub fn started(&self) -> impl Iterator<Item = (&Name, &Service)> {
        self.services.iter().filter(|(_, s)| !s.template)
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
pub fn load_service(path: &Path, name: &str) -> Result<Service, TopologyError> {
    let text = text_of(path)?;
    Ok(parse(path, &text, |root, folder, report| {
        let drafts = read::services(root, folder, report)?;
        check::service(drafts, name, root, report)
    })?)
}

fn text_of(path: &Path) -> Result<String, TopologyError> {
    let text = files::read_text(path, files::Links::Follow, files::BY_HAND);
    text.map_err(|source| TopologyError::Unreadable {
        path: path.to_owned(),
        source,
    })
}

fn parse<T>(
    path: &Path,
    text: &str,
    read: impl FnOnce(&Node, &Path, &mut Report) -> Option<T>,
) -> Result<T, InvalidFile> {
    let root = yaml::parse(path, text)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut report = Report::new(path);
    let value = read(&root, folder, &mut report);
    report.finish(value)
}
