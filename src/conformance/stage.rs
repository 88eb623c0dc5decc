//! The lock servers, the resource and the worker that is checked.

use super::conversation::{Conversation, Ended, Talk};
use super::grammar::Task;
use crate::clock::raw_monotonic_ns;
use crate::cluster::topology::{Service, Topology};
use crate::cluster::{Cluster, ClusterError, ClusterResult, NodeSpec, start_services};
use crate::model::{Fence, Gate, LogRow, Name};
use crate::resource::ResourceClient;
use crate::services::LockOptions;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const RESOURCE_TIMEOUT: Duration = Duration::from_secs(10);

pub struct Stage<'a> {
    pub cluster: &'a dyn Cluster,
    topology: &'a Topology,
    /// The worker, with its addresses and without a task.
    worker: NodeSpec,
    lock: LockOptions,
    started: AtomicU32,
}

/// The settings of a task that differ from one check to another.
pub struct Settings<'a> {
    pub key: &'a str,
    pub ttl_ms: u32,
    pub gates: &'a [Gate],
    pub more: &'a [(&'static str, &'a str)],
}

impl Settings<'_> {
    /// Returns how many rounds the worker may play; None if its time is the only bound.
    fn rounds(&self) -> Option<u32> {
        let value = |wanted| self.more.iter().find(|(name, _)| *name == wanted);
        match value("FENCEPOST_ROUNDS") {
            Some((_, rounds)) => rounds.parse().ok(),
            None if value("FENCEPOST_FOR_MS").is_some() => None,
            None => Some(1),
        }
    }
}

impl<'a> Stage<'a> {
    pub fn new(
        cluster: &'a dyn Cluster,
        topology: &'a Topology,
        worker: NodeSpec,
        lock: LockOptions,
    ) -> Stage<'a> {
        Stage {
            cluster,
            topology,
            worker,
            lock,
            started: AtomicU32::new(0),
        }
    }

    /// Starts everything but the resource, which needs to know what the worker offers.
    pub async fn start_lock_servers(&self) -> ClusterResult {
        let servers = self.services(|name| *name != self.topology.resource.node);
        start_services(self.cluster, &servers).await
    }

    /// Starts the resource and returns a client of it.
    pub async fn start_resource(&self, fence: Fence) -> ClusterResult<ResourceClient> {
        let (at, kind) = (&self.topology.resource, self.topology.resource_kind);
        let mut resource = self.services(|name| *name == at.node);
        for node in &mut resource {
            node.environment.extend(kind.settings(fence));
        }
        start_services(self.cluster, &resource).await?;
        let address = self.cluster.address(&at.node, at.port).await?;
        ResourceClient::new(&kind.url(address), RESOURCE_TIMEOUT)
            .map_err(|error| ClusterError::failed("ask the resource", error))
    }

    fn services(&self, is_wanted: impl Fn(&Name) -> bool) -> Vec<NodeSpec> {
        let started = self.topology.started();
        let wanted = started.filter(|(name, _)| is_wanted(name));
        wanted
            .map(|(name, service): (&Name, &Service)| service.node(name))
            .collect()
    }

    /// Starts the worker with a task.
    pub async fn start(&self, settings: &Settings<'_>) -> Talk<Conversation> {
        let number = self.started.fetch_add(1, Ordering::Relaxed) + 1;
        let name = Name::new(format!("worker-{number}")).expect("letters and digits");
        let mut node = self.worker.clone();
        node.name = name;
        node.environment.extend(self.settings(settings));
        for (setting, value) in settings.more {
            node.environment.insert((*setting).into(), (*value).into());
            // This address is one as it is.
            node.addressed.retain(|addressed| addressed != setting);
        }
        let task = Task {
            key: settings.key.to_owned(),
            ttl_ns: u64::from(settings.ttl_ms) * 1_000_000,
            gates: settings.gates.to_vec(),
            rounds: settings.rounds(),
        };
        let started_ns = raw_monotonic_ns();
        let console = self.cluster.start_attached(&node).await;
        let console = console.map_err(|error| Ended::NotSeen(error.to_string()))?;
        Ok(Conversation::new(node.name, console, task, started_ns))
    }

    /// Returns the task as a run would say it.
    pub fn settings(&self, settings: &Settings<'_>) -> Vec<(String, String)> {
        let gates: Vec<&str> = settings.gates.iter().map(|gate| gate.name()).collect();
        let lock = &self.lock;
        let own = [
            ("FENCEPOST_WORKER", "a".to_owned()),
            ("FENCEPOST_KEY", settings.key.to_owned()),
            ("FENCEPOST_TTL_MS", settings.ttl_ms.to_string()),
            ("FENCEPOST_BACKEND", lock.backend.to_string()),
            ("FENCEPOST_WAIT", lock.wait.to_string()),
            ("FENCEPOST_RELEASE", lock.release.to_string()),
            ("FENCEPOST_FENCE_FLOOR", lock.fence_floor.to_string()),
            ("FENCEPOST_LOCK_DELAY_MS", "0".to_owned()),
            ("FENCEPOST_GATES", gates.join(",")),
            ("FENCEPOST_FENCE", Fence::On.to_string()),
            ("FENCEPOST_ACQUIRE_TIMEOUT_MS", "10000".to_owned()),
            ("FENCEPOST_SEED", "1".to_owned()),
            ("FENCEPOST_WORK_MS", "0".to_owned()),
            ("FENCEPOST_PAUSE_MS", "0".to_owned()),
            ("FENCEPOST_ON_LOST", "stop".to_owned()),
            ("FENCEPOST_RENEW", "false".to_owned()),
            ("FENCEPOST_NESTED", "1".to_owned()),
            ("FENCEPOST_READS", "true".to_owned()),
        ];
        own.map(|(name, value)| (name.to_owned(), value)).into()
    }
}

/// Returns the writes of one key that the resource decided on.
pub async fn rows(resource: &ResourceClient, key: &str) -> Talk<Vec<LogRow>> {
    let log = resource.log().await;
    let mut rows = log.map_err(|error| Ended::NotSeen(error.to_string()))?;
    rows.retain(|row| row.key == key);
    Ok(rows)
}
