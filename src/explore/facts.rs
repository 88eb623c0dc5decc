//! What a variation of a case may name.

use super::*;
use crate::services::ReleaseStyle;

/// The things that a variation may name beside the workers of the case.
pub struct Facts {
    pub ttl: Duration,
    /// The lock servers, and what else the locks rest on.
    pub servers: Vec<String>,
    pub replicas: Vec<String>,
    /// What can be started again with its data.
    pub durable: Vec<String>,
    pub has_choices: bool,
    /// Its release asks first and deletes later.
    pub is_unsafe: bool,
}

impl Facts {
    pub fn of(case: &Node, around: &Surroundings, lab: &Lab<'_>) -> Facts {
        let lock = case.get("lock");
        let of_lock = |field: &str| {
            let field = lock.and_then(|lock| lock.get(field)?.as_scalar());
            field.unwrap_or_default()
        };
        let topology = case.get("topology").and_then(Node::as_scalar);
        let backend: Backend = of_lock("backend").parse().unwrap_or_default();
        let facts = match around {
            Surroundings::Here { topologies, .. } => topologies.get(topology.unwrap_or_default()),
            Surroundings::Recorded => None,
        };
        let (mut servers, mut replicas) = (Vec::new(), Vec::new());
        if let Some(facts) = facts {
            let worker = backend.choose(&facts.workers, |worker| worker.backend);
            let reached = worker.map_or(&[][..], |worker| &worker.reaches).iter();
            let reached = reached.filter(|name| **name != facts.resource);
            servers.extend(reached.map(ToString::to_string));
            replicas.extend(facts.replicas.keys().cloned());
        }
        let services = topology.and_then(|name| Some(&lab.topologies.get(name)?.services));
        let durable = services.into_iter().flatten();
        let durable = durable.filter(|(name, service)| {
            let is_there =
                facts.is_some_and(|facts| facts.services.iter().any(|it| ***name == **it));
            is_there && !service.rights.volumes.is_empty()
        });
        Facts {
            ttl: parse_duration(of_lock("ttl")).unwrap_or(Duration::from_secs(2)),
            servers,
            replicas,
            durable: durable.map(|(name, _)| name.to_string()).collect(),
            has_choices: backend.service().has_choices,
            is_unsafe: of_lock("release") == ReleaseStyle::UnsafeGetThenDel.to_string(),
        }
    }
}
