//! From topology and scenario to the nodes of one case.

use super::collect::ResourceAt;
use super::guests::Guests;
use super::mutant::mutant_setting;
use super::observer::{GuestWatch, ObserverTarget};
use super::*;
use crate::cluster::topology::{ENDPOINTS, RESOURCE};
use crate::cluster::{FoundServer, Need, NodeSpec};
use crate::faults::{Field, Links, Reach, Server, WorkerClocks};
use crate::model::{Fault, Fence, Gate, ResourceKind};
use crate::scenario::{CALM, Setup, Worker, once_each};
use crate::services::{HttpServer, KeyTemplate, LockServers, PostgresServer, Visit};

/// Everything that one case starts, and where its parts talk to each other.
pub struct CaseNodes {
    pub services: Vec<NodeSpec>,
    pub workers: Vec<NodeSpec>,
    pub resource: Endpoint,
    pub resource_kind: ResourceKind,
    /// The servers that its workers ask, with their kind.
    pub lock_servers: Vec<(LockServers, Endpoint)>,
    /// The same, with the server itself in place of a pooler that stands before it.
    servers_behind: Vec<(LockServers, Endpoint)>,
    /// The replicas of lock servers, each with its primary.
    pub replicas: BTreeMap<Name, Name>,
    /// The keys of the locks at each kind of server, as in [`ObserverTarget`].
    lock_keys: Vec<(LockServers, Option<KeyTemplate>)>,
    reach: Reach,
    /// The servers that are there already, as nodes that can be started again.
    attached: Vec<NodeSpec>,
    /// The same, where they were found.
    pub found: BTreeMap<Name, FoundServer>,
    /// The stay at each of them.
    visits: BTreeMap<Name, Visit>,
    /// How each of them is watched; None for one that cannot be.
    guests: BTreeMap<Name, Option<GuestWatch>>,
}

impl CaseNodes {
    pub fn new(lab: &Lab<'_>, case: &Case) -> CaseNodes {
        let topology = lab.topology(case);
        let setup = &case.setup;
        let image = lab.worker_image(case);
        let services = topology.started().map(|(name, service)| {
            let mut node = service.node(name);
            if *name == topology.resource.node {
                let kind = topology.resource_kind;
                node.environment.extend(kind.settings(case.fence));
                let defects = match kind {
                    ResourceKind::S3 => "s3-",
                    ResourceKind::Http | ResourceKind::Postgres => "resource-",
                };
                node.environment.extend(mutant_setting(lab, defects));
            }
            node
        });
        let template = |worker: &Worker| topology.worker_for(worker.lock.backend);
        let workers = setup.workers.iter().map(|worker| {
            let mut node = template(worker).service.node(&worker.name);
            node.environment.extend(worker_settings(lab, setup, worker));
            node.environment.extend(mutant_setting(lab, "lock-"));
            if let Some(url) = node.environment.get_mut(RESOURCE) {
                *url = topology.resource_kind.url_to_write(url, case.fence, true);
            }
            if let Some(image) = &image {
                node.image = image.name.clone();
                // Without a command, that of the image.
                node.command.clone_from(&setup.worker.command);
                node.is_whole_command = true;
            }
            node.environment.extend(setup.worker.env.clone());
            node
        });
        let of_workers = setup.workers.iter().map(|worker| worker.lock.backend);
        let of_load = setup.load.iter().map(|_| setup.lock.backend);
        let lock_servers = of_workers.chain(of_load).flat_map(|backend| {
            let servers = topology.worker_for(backend).lock_servers.iter();
            servers.map(move |server| (backend.servers(), server.clone()))
        });
        let lock_servers = once_each(lock_servers);
        let servers_behind = lock_servers.iter();
        let servers_behind = servers_behind.map(|(kind, server)| (*kind, topology.behind(server)));
        let lock_keys = setup.workers.iter();
        let lock_keys = once_each(
            lock_keys.map(|worker| (worker.lock.backend.servers(), worker.lock_key.clone())),
        );
        let of_workers = setup.workers.iter().map(|worker| {
            let reached = topology.reached_by(template(worker));
            (worker.name.clone(), reached)
        });
        // A load cuts no link, so none of its services is led through a proxy.
        let links = topology.links().filter(|_| setup.load.is_none());
        let of_services = links.map(|(name, reached)| (name.to_owned(), reached.to_vec()));
        CaseNodes {
            reach: of_workers.chain(of_services).collect(),
            replicas: topology.replicas(),
            services: services.collect(),
            workers: workers.collect(),
            resource: topology.resource.clone(),
            resource_kind: topology.resource_kind,
            servers_behind: servers_behind.collect(),
            lock_servers,
            lock_keys,
            attached: topology
                .attached()
                .map(|(name, it)| it.node(name))
                .collect(),
            found: BTreeMap::new(),
            visits: BTreeMap::new(),
            guests: BTreeMap::new(),
        }
    }

    /// Gives every key the prefix of the case, and leads own workers to attached servers as the
    /// users that they are there.
    pub fn visit(&mut self, guests: &Guests, setup: &Setup) -> RunResult {
        let Some(first) = guests.stays.first() else {
            return Ok(());
        };
        let prefix = &first.visit.prefix;
        let addresses = self.lock_servers.iter().map(|(_, server)| {
            let mut stays = guests.stays.iter();
            let stay = stays.find(|stay| stay.name == server.node);
            let at = server.to_string();
            stay.map_or(Ok(at.clone()), |stay| stay.visit.url_at(&at))
        });
        let addresses: Result<Vec<String>, String> = addresses.collect();
        let addresses = addresses.map_err(|reason| RunError::Attached { reason })?;
        for (node, worker) in self.workers.iter_mut().zip(&setup.workers) {
            let key = format!("{prefix}{}", worker.key);
            let environment = &mut node.environment;
            if let Some(template) = &worker.lock_key {
                environment.insert("FENCEPOST_LOCK_KEY".to_owned(), template.render(&key));
            }
            environment.insert("FENCEPOST_KEY".to_owned(), key);
            match setup.worker.is_ours() {
                true => drop(environment.insert(ENDPOINTS.to_owned(), addresses.join(","))),
                false => {
                    for (name, value) in first.visit.environment() {
                        // Of two options for one setting, the later one counts.
                        let all = environment.entry(name.to_owned()).or_default();
                        *all = format!("{all} {value}").trim_start().to_owned();
                    }
                }
            }
        }
        self.found = guests.found();
        let stays = guests.stays.iter();
        let visits = stays.map(|stay| (stay.name.clone(), stay.visit.clone()));
        self.visits = visits.collect();
        let watches = guests.stays.iter().map(|stay| {
            let watch = stay.unwatched.is_none().then(|| GuestWatch {
                url: stay.visit.url().to_owned(),
                prefix: prefix.clone(),
            });
            (stay.name.clone(), watch)
        });
        self.guests = watches.collect();
        Ok(())
    }

    pub fn resource_at(&self) -> ResourceAt {
        ResourceAt {
            endpoint: self.resource.clone(),
            kind: self.resource_kind,
        }
    }

    /// Leads every connection of a source through the source's own proxies.
    pub fn lead_through(&mut self, links: &Links) {
        for node in self.services.iter_mut().chain(&mut self.workers) {
            node.hosts = links.hosts_of(&node.name);
        }
    }

    /// Creates the field on which the nemesis acts.
    pub fn field(
        &self,
        cluster: &Arc<dyn Cluster>,
        links: Option<Links>,
        worker_clocks: impl WorkerClocks + 'static,
    ) -> Field {
        let services = self.services.iter().chain(&self.attached);
        let services = services.map(|node| (node.name.clone(), node.clone()));
        let observed = self.observed().into_iter().map(|(kind, server)| {
            let (port, answers) = (server.port, kind.program.answers);
            (server.node, Server { port, answers })
        });
        let resource = Server {
            port: self.resource.port,
            answers: match self.resource_kind {
                ResourceKind::Http | ResourceKind::S3 => &HttpServer,
                ResourceKind::Postgres => &PostgresServer,
            },
        };
        let mut field = Field::new(
            Arc::clone(cluster),
            services.collect(),
            observed
                .chain([(self.resource.node.clone(), resource)])
                .collect(),
            self.replicas.clone(),
            Box::new(worker_clocks),
            links,
        );
        field.attached = self.visits.clone();
        field
    }

    /// Returns the servers whose locks are watched: those that grant them, and those that may take
    /// their place.
    pub fn observed(&self) -> Vec<(LockServers, Endpoint)> {
        let replicas = self.replicas.iter().filter_map(|(replica, primary)| {
            let mut servers = self.servers_behind.iter();
            let (kind, primary) = servers.find(|(_, server)| server.node == *primary)?;
            let replica = Endpoint {
                node: replica.clone(),
                port: primary.port,
            };
            Some((*kind, replica))
        });
        let servers = self.servers_behind.iter().cloned();
        servers.chain(replicas).collect()
    }

    /// Returns what observers watch: each kind of keys at each server.
    pub fn watched(&self) -> Vec<ObserverTarget> {
        let servers = self.observed();
        let at = |server: &(LockServers, Endpoint)| {
            let (kind, endpoint) = server.clone();
            let rests_on = rests_on(server, &servers);
            let keys = self.lock_keys.iter().filter(move |keys| keys.0 == kind);
            keys.map(move |(kind, keys)| ObserverTarget {
                kind: *kind,
                server: endpoint.clone(),
                keys: keys.clone(),
                rests_on: rests_on.clone(),
                guest: self.guests.get(&endpoint.node).cloned().flatten(),
            })
        };
        let can_be_watched = |target: &ObserverTarget| {
            let guest = self.guests.get(&target.server.node);
            guest.is_none_or(Option::is_some)
        };
        let watched = servers.iter().flat_map(at);
        watched.filter(can_be_watched).collect()
    }

    /// Returns what a fault of an attached server needs.
    pub fn need_at_attached(&self, fault: &Fault) -> Option<Need<'static>> {
        let is_own = |node: &Name| self.attached.iter().all(|it| it.name != *node);
        match fault {
            Fault::Links(_) => None,
            Fault::Node(fault) if is_own(&fault.node) => None,
            Fault::Node(_) => Some(Need::AttachedContainer),
        }
    }

    /// Returns the servers that each worker and each service connects to.
    pub fn reach(&self) -> &Reach {
        &self.reach
    }

    pub fn worker_names(&self) -> Vec<Name> {
        self.workers.iter().map(|node| node.name.clone()).collect()
    }
}

/// Returns the nodes whose faults can be the reason that this server does not answer. A member of
/// a cluster has to ask the others.
fn rests_on(
    (kind, server): &(LockServers, Endpoint),
    all: &[(LockServers, Endpoint)],
) -> Vec<Name> {
    if !kind.program.is_cluster {
        return vec![server.node.clone()];
    }
    let members = all.iter().filter(|(other, _)| other == kind);
    members.map(|(_, member)| member.node.clone()).collect()
}

/// Returns the environment of the worker protocol. The token is always attached, even if the
/// resource does not look at it: the judge needs it in the log.
fn worker_settings(lab: &Lab<'_>, setup: &Setup, worker: &Worker) -> BTreeMap<String, String> {
    let lock = &worker.lock;
    let gates = [Gate::Start].iter().chain(&worker.gates);
    let gates: Vec<&str> = gates.map(|gate| gate.name()).collect();
    let goes_on_for = setup.duration.unwrap_or_default() + CALM;
    let ms = |duration: Duration| duration.as_millis().to_string();
    let lock_key = worker.lock_key.iter();
    let lock_key = lock_key.map(|keys| ("FENCEPOST_LOCK_KEY", keys.render(&worker.key)));
    let settings = [
        ("FENCEPOST_WORKER", worker.name.to_string()),
        ("FENCEPOST_KEY", worker.key.clone()),
        ("FENCEPOST_TTL_MS", ms(worker.ttl)),
        ("FENCEPOST_BACKEND", lock.backend.to_string()),
        ("FENCEPOST_WAIT", lock.wait.to_string()),
        ("FENCEPOST_RELEASE", lock.release.to_string()),
        ("FENCEPOST_FENCE_FLOOR", lock.fence_floor.to_string()),
        ("FENCEPOST_LOCK_DELAY_MS", ms(lock.lock_delay)),
        ("FENCEPOST_GATES", gates.join(",")),
        // A worker that goes on for a time has no number of rounds.
        match worker.rounds {
            Some(rounds) => ("FENCEPOST_ROUNDS", rounds.to_string()),
            None => ("FENCEPOST_FOR_MS", ms(goes_on_for)),
        },
        ("FENCEPOST_FENCE", Fence::On.to_string()),
        ("FENCEPOST_ACQUIRE_TIMEOUT_MS", ms(setup.deadline)),
        ("FENCEPOST_SEED", lab.options.seed.to_string()),
    ];
    let settings = settings.into_iter().chain(lock_key);
    let settings = settings.map(|(name, value)| (name.to_owned(), value));
    let own = worker.fields.settings().into_iter();
    let own = own.map(|(name, value)| (format!("FENCEPOST_{name}"), value));
    settings.chain(own).collect()
}
