//! A topology whose lock servers are there already.

use super::{ENDPOINTS, Endpoint, Port, Service, Topology, WorkerTemplate};
use crate::cluster::{Image, Rights};
use crate::model::{Attach, Name};
use crate::services::Backend;
use std::collections::{BTreeMap, BTreeSet};

impl Topology {
    /// Puts servers that are there already in the place of its lock servers. Workers and the
    /// resource stay its own.
    pub fn attached_to(&self, attach: &Attach, backend: Backend) -> Topology {
        let template = self.worker_for(backend);
        // A worker reaches all of them at one address, each by a port of its own.
        let mut taken = BTreeSet::from([self.resource.port]);
        let mut lock_servers = Vec::new();
        let mut services = BTreeMap::new();
        for (name, server) in &attach.servers {
            let wanted = server.place.port();
            let mut ports = (wanted..=u16::MAX).chain(1024..wanted);
            let port = ports.find(|port| taken.insert(*port)).unwrap_or(wanted);
            services.insert(
                name.clone(),
                Service {
                    attached: Some(server.clone()),
                    ..nothing(port)
                },
            );
            let node = name.clone();
            lock_servers.push(Endpoint { node, port });
        }
        let own = [&self.resource.node, &template.name];
        let own = own.map(|name| (name.clone(), self.services.get(name).cloned()));
        services.extend(own.into_iter().filter_map(|(name, own)| Some((name, own?))));
        let mut worker = template.clone();
        let addresses: Vec<String> = lock_servers.iter().map(Endpoint::to_string).collect();
        let setting = (ENDPOINTS.to_owned(), addresses.join(","));
        worker.service.environment.extend([setting]);
        Topology {
            services,
            workers: vec![WorkerTemplate {
                lock_servers,
                ..worker
            }],
            ..self.clone()
        }
    }

    /// Returns the servers that are there already.
    pub fn attached(&self) -> impl Iterator<Item = (&Name, &Service)> {
        let services = self.services.iter();
        services.filter(|(_, service)| service.attached.is_some())
    }
}

/// Returns a service of which nothing is started.
fn nothing(port: u16) -> Service {
    Service {
        image: Image {
            name: String::new(),
            build: None,
        },
        command: Vec::new(),
        environment: BTreeMap::new(),
        ports: vec![Port {
            host: 0,
            container: port,
        }],
        ready: None,
        started: None,
        links: Vec::new(),
        replica_of: None,
        pools: None,
        after: Vec::new(),
        rights: Rights::default(),
        template: false,
        attached: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{AttachedServer, ServerPlace};

    #[test]
    fn attached_servers_take_the_place_of_the_lock_servers_alone() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/compose/etcd.yml");
        let base = Topology::load(std::path::Path::new(file)).unwrap();
        let server = |host: &str| AttachedServer {
            place: ServerPlace::Address {
                host: host.to_owned(),
                port: 2379,
            },
            login: None,
            database: None,
        };
        let attach = Attach {
            servers: BTreeMap::from([("one".into(), server("a")), ("two".into(), server("b"))]),
            ..Attach::default()
        };
        let topology = base.attached_to(&attach, Backend::Etcd);
        let started: Vec<&str> = topology.started().map(|(name, _)| name.as_str()).collect();
        assert_eq!(started, ["resource"]);
        assert_eq!(topology.attached().count(), 2);
        let worker = topology.worker_for(Backend::Etcd);
        let endpoints = &worker.service.environment[ENDPOINTS];
        assert_eq!(endpoints, "one:2379,two:2380", "each has a port of its own");
        assert!(topology.images().all(|image| !image.name.is_empty()));
        assert_eq!(topology.links().count(), 0);
    }
}
