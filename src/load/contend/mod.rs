//! Contenders for one hot key, or for many.
//!
//! In the open model, a separate thread makes arrivals at their rate, whatever happens to
//! earlier ones, and every time counts from when an arrival was due. So a lock that cannot keep
//! up shows as a growing queue, and not as contenders that ask less often.

mod backlog;
mod bound;
mod contender;
mod dispatcher;
mod fairness;
mod generator;
mod health;
mod heard;
mod keys;
mod overheard;
mod probe;
mod step;
mod tally;
mod timings;
mod uncontended;

use super::{LoadError, LoadResult, Recorder, Targets};
use crate::clock::raw_monotonic_ns;
use crate::load::ContendPlan;
use crate::model::{ArrivalEnd, ContendStep, Latency, Uncontended};
use crate::progress::Task;
use crate::resource::ResourceClient;
use crate::services;
use backlog::Due;
use fencing_lock;
use fencing_lock::{
    Env, LockBackend, LockClient, LockError, LockMetrics, LockProblem, LockSettings,
};
use futures_util::future::join_all;
use health::Health;
pub use heard::heard;
use overheard::Overheard;
use parking_lot::Mutex;
use probe::Probe;
use std::sync::Arc;
use std::time::Duration;
use timings::Timings;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// The state that all steps of a plan share.
struct Run<'a> {
    plan: &'a ContendPlan,
    seed: u64,
    clients: Vec<LockClient>,
    metrics: LockMetrics,
    locks: Arc<Health>,
    resource: ResourceClient,
    probe: Probe,
    recorder: Arc<dyn Recorder>,
    task: &'a dyn Task,
    interrupt: &'a CancellationToken,
}

/// The deadline of one request to the resource, as workers have it.
const RESOURCE_TIMEOUT: Duration = Duration::from_secs(30);
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// A finished part of a load.
#[derive(Clone, Copy)]
pub enum ContendPart<'a> {
    Uncontended(&'a Uncontended),
    Step(&'a ContendStep),
}

/// Takes every step of the plan and reports each when it is over.
///
/// A step that is cut short (by the interrupt, or because a kind of server returns only errors)
/// is reported like the others, with what was measured until then, and is the last.
pub async fn contend(
    plan: &ContendPlan,
    targets: &Targets,
    seed: u64,
    recorder: Arc<dyn Recorder>,
    task: &dyn Task,
    interrupt: &CancellationToken,
    on_part: &mut (dyn FnMut(ContendPart<'_>) + Send),
) -> LoadResult {
    LoadError::refuse(plan.mistakes())?;
    let run = Run::open(plan, targets, seed, recorder, task, interrupt)?;
    run.everybody_answers(targets).await?;
    if let Some(lasting) = plan.floor {
        let alone = uncontended::measure(&run, &targets.lock_servers, lasting).await?;
        on_part(ContendPart::Uncontended(&alone));
    }
    for &contenders in &plan.contenders {
        if interrupt.is_cancelled() {
            return Err(LoadError::CutShort("interrupted".to_owned()));
        }
        let taken = step::take(&run, contenders).await;
        on_part(ContendPart::Step(&taken.step));
        if let Some(reason) = taken.cut_short {
            return Err(LoadError::CutShort(reason));
        }
    }
    Ok(())
}

impl<'a> Run<'a> {
    fn open(
        plan: &'a ContendPlan,
        targets: &Targets,
        seed: u64,
        recorder: Arc<dyn Recorder>,
        task: &'a dyn Task,
        interrupt: &'a CancellationToken,
    ) -> LoadResult<Run<'a>> {
        let metrics = LockMetrics::default();
        let locks = Arc::new(Health::default());
        let backend = || services::open(&plan.lock, &targets.lock_servers, None, Env::default());
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

    /// Connects every client, so that no step measures the connecting.
    async fn everybody_answers(&self, targets: &Targets) -> LoadResult {
        self.task
            .detail("asking the servers whether they are there");
        let backend = self.plan.lock.backend;
        let locks = |problem: LockProblem| {
            let what = format!("{backend} at {}", targets.lock_servers.join(","));
            let reason = problem.to_string();
            match problem {
                LockProblem::Refused(_) | LockProblem::TtlNotKept { .. } => {
                    LoadError::Unusable { what, reason }
                }
                _ => LoadError::Unreachable { what, reason },
            }
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
        let warm: Result<(), LockProblem> = join_all(warm_up).await.into_iter().collect();
        warm.map_err(locks)
    }

    /// Returns the number of tries for a lock and of all requests that were sent so far.
    fn sent(&self) -> (u64, u64) {
        let attempts = self.metrics.acquire_attempts.get();
        (attempts, self.metrics.requests.get())
    }
}
