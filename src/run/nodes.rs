//! From topology and scenario to the nodes of one case.

use super::RunRequest;
use super::mutant::mutant_setting;
use super::observer::Watched;
use crate::cluster::topology::Endpoint;
use crate::cluster::{Cluster, NodeSpec};
use crate::fault::{Field, Links, Reach, Server, WorkerClocks};
use crate::model::{Fence, Gate, KeyTemplate, LockServers, Name};
use crate::scenario::{CALM, Case, Setup, Worker};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Everything that one case starts, and where its parts talk to each other.
pub struct CaseNodes {
    pub services: Vec<NodeSpec>,
    pub workers: Vec<NodeSpec>,
    pub resource: Endpoint,
    /// Those that its workers ask, with what they speak.
    pub lock_servers: Vec<(LockServers, Endpoint)>,
    /// From a replica of a lock server to its primary.
    pub replicas: BTreeMap<Name, Name>,
    /// Where the locks lie at each kind of server, as in [`Watched`].
    lock_keys: Vec<(LockServers, Option<KeyTemplate>)>,
    reach: Reach,
}

impl CaseNodes {
    pub fn new(request: &RunRequest<'_>, case: &Case) -> CaseNodes {
        let topology = request.topology(case);
        let setup = &case.setup;
        let image = request.worker_image(case);
        let services = topology.started().map(|(name, service)| {
            let mut node = service.node(name);
            if *name == topology.resource.node {
                let settings = resource_settings(request, case.fence);
                node.environment.extend(settings);
            }
            node
        });
        let template = |worker: &Worker| topology.worker_for(worker.lock.backend);
        let workers = setup.workers.iter().map(|worker| {
            let mut node = template(worker).service.node(&worker.name);
            node.environment
                .extend(worker_settings(request, setup, worker));
            node.environment.extend(mutant_setting(request, "lock-"));
            if let Some(image) = &image {
                node.image = image.name.clone();
                // It has a program of its own.
                node.command = Vec::new();
            }
            node
        });
        let of_workers = setup.workers.iter().map(|worker| worker.lock.backend);
        let of_load = setup.load.iter().map(|_| setup.lock.backend);
        let mut lock_servers = Vec::new();
        for backend in of_workers.chain(of_load) {
            let speaks = backend.servers();
            for server in &topology.worker_for(backend).lock_servers {
                let server = (speaks, server.clone());
                if !lock_servers.contains(&server) {
                    lock_servers.push(server);
                }
            }
        }
        let mut lock_keys = Vec::new();
        for worker in &setup.workers {
            let keys = (worker.lock.backend.servers(), worker.lock_key.clone());
            if !lock_keys.contains(&keys) {
                lock_keys.push(keys);
            }
        }
        let of_workers = setup.workers.iter().map(|worker| {
            let reached = topology.reached_by(template(worker));
            (worker.name.clone(), reached)
        });
        // Where no link is cut, nobody is led through a proxy.
        let links = topology.links().filter(|_| setup.load.is_none());
        let of_services = links.map(|(name, reached)| (name.to_owned(), reached.to_vec()));
        CaseNodes {
            reach: of_workers.chain(of_services).collect(),
            replicas: topology.replicas(),
            services: services.collect(),
            workers: workers.collect(),
            resource: topology.resource.clone(),
            lock_servers,
            lock_keys,
        }
    }

    /// Sends what every source connects to through its own proxies.
    pub fn lead_through(&mut self, links: &Links) {
        for node in self.services.iter_mut().chain(&mut self.workers) {
            node.hosts = links.hosts_of(&node.name);
        }
    }

    /// Where the nemesis acts.
    pub fn field(
        &self,
        cluster: &Arc<dyn Cluster>,
        worker_clocks: impl WorkerClocks + 'static,
    ) -> Field {
        let services = self.services.iter();
        let services = services.map(|node| (node.name.clone(), node.clone()));
        let observed = self.observed().into_iter().map(|(kind, server)| {
            let port = server.port;
            let speaks = match kind {
                LockServers::OneRedis | LockServers::RedisNodes => Server::Redis { port },
                LockServers::Etcd => Server::Etcd { port },
            };
            (server.node, speaks)
        });
        let resource = Server::Resource {
            port: self.resource.port,
        };
        Field::new(
            Arc::clone(cluster),
            services.collect(),
            observed
                .chain([(self.resource.node.clone(), resource)])
                .collect(),
            self.replicas.clone(),
            Box::new(worker_clocks),
        )
    }

    /// The servers whose locks are watched: those that workers ask, and those
    /// that may take their place.
    pub fn observed(&self) -> Vec<(LockServers, Endpoint)> {
        let replicas = self.replicas.iter().filter_map(|(replica, primary)| {
            let mut servers = self.lock_servers.iter();
            let (kind, primary) = servers.find(|(_, server)| server.node == *primary)?;
            let replica = Endpoint {
                node: replica.clone(),
                port: primary.port,
            };
            Some((*kind, replica))
        });
        self.lock_servers.iter().cloned().chain(replicas).collect()
    }

    /// What bystanders look at: each kind of keys at each server.
    pub fn watched(&self) -> Vec<Watched> {
        let servers = self.observed();
        let at = |server: &(LockServers, Endpoint)| {
            let (kind, endpoint) = server.clone();
            let rests_on = rests_on(server, &servers);
            let keys = self.lock_keys.iter().filter(move |keys| keys.0 == kind);
            keys.map(move |(kind, keys)| Watched {
                kind: *kind,
                server: endpoint.clone(),
                keys: keys.clone(),
                rests_on: rests_on.clone(),
            })
        };
        servers.iter().flat_map(at).collect()
    }

    /// What each worker and each service connects to.
    pub fn reach(&self) -> &Reach {
        &self.reach
    }

    pub fn worker_names(&self) -> Vec<Name> {
        self.workers.iter().map(|node| node.name.clone()).collect()
    }
}

/// Whose faults can be why this server does not answer. A member of a cluster has
/// to ask the others.
fn rests_on(
    (kind, server): &(LockServers, Endpoint),
    all: &[(LockServers, Endpoint)],
) -> Vec<Name> {
    match kind {
        LockServers::OneRedis | LockServers::RedisNodes => vec![server.node.clone()],
        LockServers::Etcd => {
            let members = all.iter().filter(|(kind, _)| *kind == LockServers::Etcd);
            members.map(|(_, member)| member.node.clone()).collect()
        }
    }
}

fn resource_settings(request: &RunRequest<'_>, fence: Fence) -> Vec<(String, String)> {
    let mut settings = vec![("FENCEPOST_FENCE".to_owned(), fence.to_string())];
    settings.extend(mutant_setting(request, "resource-"));
    settings
}

/// The worker protocol's environment. The token is always attached, also where
/// the resource does not look at it: the judge needs it in the log.
fn worker_settings(
    request: &RunRequest<'_>,
    setup: &Setup,
    worker: &Worker,
) -> BTreeMap<String, String> {
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
        ("FENCEPOST_GATES", gates.join(",")),
        // Whoever goes on for a time is not held up by a number.
        match worker.rounds {
            Some(rounds) => ("FENCEPOST_ROUNDS", rounds.to_string()),
            None => ("FENCEPOST_FOR_MS", ms(goes_on_for)),
        },
        ("FENCEPOST_NESTED", worker.nested.to_string()),
        ("FENCEPOST_READS", worker.reads.to_string()),
        ("FENCEPOST_WORK_MS", ms(worker.work)),
        ("FENCEPOST_PAUSE_MS", ms(worker.pause)),
        ("FENCEPOST_ON_LOST", worker.on_lost.to_string()),
        ("FENCEPOST_RENEW", worker.renew.to_string()),
        ("FENCEPOST_FENCE", Fence::On.to_string()),
        ("FENCEPOST_ACQUIRE_TIMEOUT_MS", ms(setup.deadline)),
        ("FENCEPOST_SEED", request.seed.to_string()),
    ];
    let settings = settings.into_iter().chain(lock_key);
    settings
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}
