//! Contenders for one hot key, or for many.
//!
//! In the open model, arrivals come at their rate from a thread of its own,
//! whatever becomes of those before, and every time counts from when an arrival
//! was due. So a lock that cannot keep up shows as a queue that grows, and not
//! as contenders that ask less often.

mod backlog;
mod bound;
mod contender;
mod dispatcher;
mod fairness;
mod generator;
mod health;
mod keys;
mod overheard;
mod probe;
mod step;
mod tally;
mod timings;

use super::{LoadError, Recorder, Targets};
use crate::dlock::{self, LockBackend, LockClient, LockError, LockMetrics, LockSettings};
use crate::model::{ContendPlan, ContendStep};
use crate::progress::Task;
use crate::resource::ResourceClient;
use futures_util::future::join_all;
use health::Health;
use overheard::Overheard;
use probe::Probe;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What all steps of a plan have in common.
struct Run<'a> {
    plan: &'a ContendPlan,
    seed: u64,
    clients: Vec<LockClient>,
    /// Counts what all clients do.
    metrics: LockMetrics,
    /// How the lock servers are.
    locks: Arc<Health>,
    resource: ResourceClient,
    probe: Probe,
    recorder: Arc<dyn Recorder>,
    task: &'a dyn Task,
    interrupt: &'a CancellationToken,
}

/// For one request to the resource, as workers have it.
const RESOURCE_TIMEOUT: Duration = Duration::from_secs(30);
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// Takes every step of the plan and tells each when it is over.
///
/// A step that is cut short (by the interrupt, or because a kind of server gives
/// nothing but errors) is told like the others, with what was measured until
/// then, and is the last.
pub async fn contend(
    plan: &ContendPlan,
    targets: &Targets,
    seed: u64,
    recorder: Arc<dyn Recorder>,
    task: &dyn Task,
    interrupt: &CancellationToken,
    on_step: &mut (dyn FnMut(&ContendStep) + Send),
) -> Result<(), LoadError> {
    let mistakes = plan.mistakes();
    if !mistakes.is_empty() {
        let lines = mistakes
            .iter()
            .map(|(field, words)| format!("{field}: {words}"));
        return Err(LoadError::Usage(lines.collect::<Vec<_>>().join("\n")));
    }
    let run = Run::open(plan, targets, seed, recorder, task, interrupt)?;
    run.everybody_answers(targets).await?;
    for &contenders in &plan.contenders {
        if interrupt.is_cancelled() {
            return Err(LoadError::CutShort("interrupted".to_owned()));
        }
        let taken = step::take(&run, contenders).await;
        on_step(&taken.step);
        if let Some(reason) = taken.cut_short {
            return Err(LoadError::CutShort(reason));
        }
    }
    Ok(())
}

impl<'a> Run<'a> {
    /// Nothing is connected yet.
    fn open(
        plan: &'a ContendPlan,
        targets: &Targets,
        seed: u64,
        recorder: Arc<dyn Recorder>,
        task: &'a dyn Task,
        interrupt: &'a CancellationToken,
    ) -> Result<Run<'a>, LoadError> {
        let metrics = LockMetrics::default();
        let locks = Arc::new(Health::default());
        let backend = || dlock::open(&plan.lock, &targets.lock_servers);
        let client = |backend: Arc<dyn LockBackend>, seed: u64, metrics: LockMetrics| {
            let ttl = plan.ttl;
            LockClient::new(backend, LockSettings { ttl, seed }, metrics)
        };
        let overheard = |index: u32| -> Result<LockClient, LockError> {
            let overheard = Overheard {
                backend: backend()?,
                health: locks.clone(),
            };
            let seed = seed.wrapping_add(index.into());
            client(Arc::new(overheard), seed, metrics.clone())
        };
        let usage = |error: &dyn std::error::Error| LoadError::Usage(error.to_string());
        let clients = (0..plan.clients).map(overheard).collect::<Result<_, _>>();
        let clients = clients.map_err(|error| usage(&error))?;
        let alone = backend().and_then(|backend| client(backend, seed, LockMetrics::default()));
        let resource = |timeout| {
            let client = ResourceClient::new(&targets.resource, timeout);
            client.map_err(|error| usage(&error))
        };
        Ok(Run {
            plan,
            seed,
            clients,
            metrics,
            locks,
            resource: resource(RESOURCE_TIMEOUT)?,
            probe: Probe {
                locks: alone.map_err(|error| usage(&error))?,
                resource: resource(PROBE_TIMEOUT)?,
            },
            recorder,
            task,
            interrupt,
        })
    }

    /// Connects every client, so that no step measures that.
    async fn everybody_answers(&self, targets: &Targets) -> Result<(), LoadError> {
        self.task
            .detail("asking the servers whether they are there");
        let backend = self.plan.lock.backend;
        let locks = |reason| LoadError::Unreachable {
            what: format!("{backend} at {}", targets.lock_servers.join(",")),
            reason,
        };
        self.probe.locks_answer().await.map_err(locks)?;
        let resource = self.probe.resource_answers().await;
        resource.map_err(|reason| LoadError::Unreachable {
            what: format!("the resource at {}", targets.resource),
            reason,
        })?;
        let warm_up = self
            .clients
            .iter()
            .enumerate()
            .map(|(index, client)| async move {
                probe::locks_answer(client, &format!("contend-probe-{index}")).await
            });
        let warm: Result<(), String> = join_all(warm_up).await.into_iter().collect();
        warm.map_err(locks)
    }

    /// Tries for a lock, and requests of all kinds, that were sent so far.
    fn sent(&self) -> (u64, u64) {
        let attempts = self.metrics.acquire_attempts.get();
        (attempts, self.metrics.requests.get())
    }
}
