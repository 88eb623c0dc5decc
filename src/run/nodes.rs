//! From topology and scenario to the nodes of one case.

use super::RunRequest;
use crate::cluster::NodeSpec;
use crate::cluster::topology::Endpoint;
use crate::model::{Fence, Gate};
use crate::scenario::{Case, Worker};
use std::collections::BTreeMap;

/// Everything that one case starts, and where its parts talk to each other.
pub struct CaseNodes {
    pub services: Vec<NodeSpec>,
    pub workers: Vec<NodeSpec>,
    pub resource: Endpoint,
    pub lock_servers: Vec<Endpoint>,
}

impl CaseNodes {
    pub fn new(request: &RunRequest<'_>, case: &Case) -> CaseNodes {
        let topology = request.topology;
        let services = topology.started().map(|(name, service)| {
            let mut node = service.node(name);
            if *name == topology.resource.node {
                let settings = resource_settings(request, case.fence);
                node.environment.extend(settings);
            }
            node
        });
        let workers = request.scenario.workers.iter().map(|worker| {
            let mut node = topology.worker().node(&worker.name);
            node.environment.extend(worker_settings(request, worker));
            node
        });
        CaseNodes {
            services: services.collect(),
            workers: workers.collect(),
            resource: topology.resource.clone(),
            lock_servers: topology.lock_servers.clone(),
        }
    }

    pub fn worker_names(&self) -> Vec<String> {
        self.workers.iter().map(|node| node.name.clone()).collect()
    }
}

fn resource_settings(request: &RunRequest<'_>, fence: Fence) -> Vec<(String, String)> {
    let mut settings = vec![("FENCEPOST_FENCE".to_owned(), fence.to_string())];
    let mutant = request
        .mutant
        .iter()
        .filter(|name| name.starts_with("resource-"));
    settings.extend(mutant.map(|name| ("FENCEPOST_MUTANT".to_owned(), name.clone())));
    settings
}

/// The worker protocol's environment. The token is always attached, also where
/// the resource does not look at it: the judge needs it in the log.
fn worker_settings(request: &RunRequest<'_>, worker: &Worker) -> BTreeMap<String, String> {
    let scenario = request.scenario;
    let gates = [Gate::Start].iter().chain(&worker.gates);
    let gates: Vec<&str> = gates.map(|gate| gate.name()).collect();
    let ms = |duration: std::time::Duration| duration.as_millis().to_string();
    [
        ("FENCEPOST_WORKER", worker.name.clone()),
        ("FENCEPOST_KEY", worker.key.clone()),
        ("FENCEPOST_TTL_MS", ms(scenario.ttl)),
        ("FENCEPOST_BACKEND", scenario.lock.backend.to_string()),
        ("FENCEPOST_WAIT", scenario.lock.wait.to_string()),
        ("FENCEPOST_RELEASE", scenario.lock.release.to_string()),
        (
            "FENCEPOST_FENCE_FLOOR",
            scenario.lock.fence_floor.to_string(),
        ),
        ("FENCEPOST_GATES", gates.join(",")),
        ("FENCEPOST_ROUNDS", worker.rounds.to_string()),
        ("FENCEPOST_WORK_MS", ms(worker.work)),
        ("FENCEPOST_PAUSE_MS", ms(worker.pause)),
        ("FENCEPOST_ON_LOST", worker.on_lost.to_string()),
        ("FENCEPOST_RENEW", worker.renew.to_string()),
        ("FENCEPOST_FENCE", Fence::On.to_string()),
        ("FENCEPOST_ACQUIRE_TIMEOUT_MS", ms(scenario.deadline)),
        ("FENCEPOST_SEED", request.seed.to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}
