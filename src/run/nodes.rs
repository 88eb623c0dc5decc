//! From topology and scenario to the nodes of one case.

use super::{RunError, RunRequest};
use crate::cluster::NodeSpec;
use crate::cluster::topology::Service;
use crate::model::{Fence, Gate};
use crate::scenario::{Case, Worker};
use std::collections::BTreeMap;

const RESOURCE: &str = "resource";
const WORKER_TEMPLATE: &str = "worker";

/// A service and its port on the cluster's network: `redis:6379`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub node: String,
    pub port: u16,
}

/// Everything that one case starts, and where its parts talk to each other.
pub struct CaseNodes {
    pub services: Vec<NodeSpec>,
    pub workers: Vec<NodeSpec>,
    pub resource: Endpoint,
    pub lock_servers: Vec<Endpoint>,
}

impl CaseNodes {
    pub fn new(request: &RunRequest<'_>, case: &Case) -> Result<CaseNodes, RunError> {
        let topology = request.topology;
        let template = topology.services.get(WORKER_TEMPLATE).ok_or_else(|| {
            RunError::Topology(format!(
                "there is no service `{WORKER_TEMPLATE}` to start workers from"
            ))
        })?;
        let setting = |name: &str| {
            let value = template.environment.get(name);
            value
                .ok_or_else(|| RunError::Topology(format!("the worker's environment needs {name}")))
        };
        let resource = endpoint(setting("FENCEPOST_RESOURCE")?.trim_start_matches("http://"))?;
        let lock_servers = setting("FENCEPOST_ENDPOINTS")?
            .split(',')
            .map(endpoint)
            .collect::<Result<_, _>>()?;
        let services = topology.started().map(|(name, service)| {
            let mut node = node(name, service);
            if name == RESOURCE {
                node.environment
                    .extend(resource_settings(request, case.fence));
            }
            node
        });
        let workers = request.scenario.workers.iter().map(|worker| {
            let mut node = node(&worker.name, template);
            node.environment.extend(worker_settings(request, worker));
            node
        });
        Ok(CaseNodes {
            services: services.collect(),
            workers: workers.collect(),
            resource,
            lock_servers,
        })
    }
}

fn node(name: &str, service: &Service) -> NodeSpec {
    NodeSpec {
        name: name.to_owned(),
        image: service.image.clone(),
        command: service.command.clone(),
        environment: service.environment.clone(),
        ports: service.ports.clone(),
        ready: service.ready.clone(),
    }
}

fn endpoint(text: &str) -> Result<Endpoint, RunError> {
    let parsed = text.trim().split_once(':').and_then(|(node, port)| {
        Some(Endpoint {
            node: node.to_owned(),
            port: port.parse().ok()?,
        })
    });
    parsed.ok_or_else(|| RunError::Topology(format!("`{text}` is not SERVICE:PORT")))
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
        ("FENCEPOST_BACKEND", scenario.backend.to_string()),
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
