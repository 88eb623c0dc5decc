//! The worker: acquires, reads, works, writes and releases, and reports each step as an event.
//!
//! It is pid 1 of its container. It depends on the harness only through its environment, its
//! stdout and its stdin, so a worker in another language can replace it. The harness can make
//! it wait at gates, so that a fault comes exactly where a scenario wants it.
//!
//! It must run on a current-thread runtime: an injected pause then blocks that one thread, and
//! the watchdog with it, as a stopped world would.

mod metrics_server;
mod protocol;
mod round;
mod task;

pub use task::WorkerTask;

use crate::clock::raw_monotonic_ns;
use crate::model::{EventKind, Gate};
use crate::resource::{ClientError, ResourceClient};
use crate::services;
use fencing_lock::{
    self, Env, LockBackend, LockClient, LockError, LockMetrics, LockSettings, MAX_KEY_BYTES,
    ReentrantLocks,
};
use metrics_server::serve_metrics;
use prometheus_client::registry::Registry;
use protocol::{Emitter, Gates, stdin_lines};
use round::{Played, Rounds};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::sleep;

/// The way in which a worker ended without an error of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerEnd {
    /// All rounds are over. Any of them may have failed and reported it.
    Done,
    /// The input ended, or the worker was asked to terminate. Anything in progress is dropped:
    /// a lease is released in the background at best, otherwise it expires.
    Stopped,
}

#[derive(Debug, Error)]
pub enum WorkerError {
    #[error("--{0}: {1}")]
    Conflict(&'static str, String),
    #[error("a key has 1 to {MAX_KEY_BYTES} bytes, and this one has {0}")]
    Key(usize),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error("the resource at {url:?} cannot be used: {source}")]
    Resource { url: String, source: ClientError },
    #[error("events cannot be written: {0}")]
    Output(#[source] io::Error),
    #[error("metrics cannot be served on {address}: {source}")]
    Metrics {
        address: SocketAddr,
        source: io::Error,
    },
    #[error("SIGTERM cannot be listened for: {0}")]
    Signal(#[source] io::Error),
}

impl WorkerError {
    /// Returns whether the request cannot be fulfilled, so that the user has to change it.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            WorkerError::Conflict(..)
                | WorkerError::Key(_)
                | WorkerError::Lock(_)
                | WorkerError::Resource { .. }
        )
    }
}

/// Runs the worker role: writes events to stdout, reads gate orders from stdin.
pub async fn run(task: WorkerTask) -> Result<WorkerEnd, WorkerError> {
    // The kernel ignores SIGTERM for pid 1 unless the process listens for it.
    let mut terminate = signal(SignalKind::terminate()).map_err(WorkerError::Signal)?;
    tokio::select! {
        end = run_with(task, stdin_lines(), io::stdout()) => end,
        _ = terminate.recv() => Ok(WorkerEnd::Stopped),
    }
}

/// Does the same as [`run`], but the caller supplies both ends: `lines` replaces stdin, and
/// closing it is the end of the input.
pub async fn run_with(
    task: WorkerTask,
    lines: mpsc::Receiver<String>,
    output: impl Write + Send + 'static,
) -> Result<WorkerEnd, WorkerError> {
    let resource = ResourceClient::new(&task.resource, RESOURCE_TIMEOUT).map_err(|source| {
        let url = task.resource.clone();
        WorkerError::Resource { url, source }
    })?;
    let resource = styled(resource, &task)?;
    run_in(Env::default(), resource, task, lines, output).await
}

/// Makes the client write as the task wants it.
fn styled(resource: ResourceClient, task: &WorkerTask) -> Result<ResourceClient, WorkerError> {
    let conflict = |reason: String| WorkerError::Conflict("writes", reason);
    if task.writes.begins_with_the_read() && !task.reads {
        return Err(conflict(format!("{} begins with the read", task.writes)));
    }
    let styled = resource.with_style(task.writes);
    styled.ok_or_else(|| {
        let remedy = "a table of a Postgres knows every way, an S3 compare and two mistakes";
        conflict(format!(
            "{} is no way to write to it: {remedy}",
            task.writes
        ))
    })
}

/// Does the same in surroundings that may be simulated.
pub async fn run_in(
    env: Env,
    resource: ResourceClient,
    task: WorkerTask,
    lines: mpsc::Receiver<String>,
    output: impl Write + Send + 'static,
) -> Result<WorkerEnd, WorkerError> {
    let metrics = LockMetrics::default();
    let locks = ReentrantLocks::new(lock_client(&task, metrics.clone(), env)?);
    let emitter = Emitter::new(&task.worker, output);
    let (gates, input_ended) = Gates::new(&task.gates, lines, &emitter);
    let rounds = Rounds {
        task: &task,
        locks: &locks,
        resource: &resource,
        emitter: &emitter,
        gates: &gates,
    };
    tokio::select! {
        // The rounds come first, so that the last event is not lost when the input ends at the
        // same moment.
        biased;
        result = play_all(&rounds) => {
            result.map(|()| WorkerEnd::Done).map_err(WorkerError::Output)
        }
        () = input_ended => Ok(WorkerEnd::Stopped),
        error = metrics_page(task.metrics, &metrics) => Err(error),
    }
}

/// The deadline of one request to the resource. The worker must still be waiting for the answer
/// when a network delays a write for longer than any TTL.
pub const RESOURCE_TIMEOUT: Duration = Duration::from_secs(30);
/// The pause after a failed round. Without it, the worker would ask a server that refuses
/// connections as fast as it can refuse.
const AFTER_A_FAILURE: Duration = Duration::from_millis(100);

async fn play_all(rounds: &Rounds<'_>) -> io::Result<()> {
    let Rounds { task, emitter, .. } = rounds;
    emitter.emit(EventKind::ready(Vec::new()))?;
    rounds.gates.pass(Gate::Start, 0, emitter).await?;
    let started_ns = raw_monotonic_ns();
    let since_start = || Duration::from_nanos(raw_monotonic_ns() - started_ns);
    let mut played = 0;
    while task.wants_another_round(played, since_start()) {
        played += 1;
        if rounds.play(played).await? == Played::Failed {
            sleep(AFTER_A_FAILURE).await;
        }
    }
    emitter.emit(EventKind::Done { rounds: played })
}

/// Makes the lock client without connecting: an absent server shows in the rounds.
fn lock_client(
    task: &WorkerTask,
    metrics: LockMetrics,
    env: Env,
) -> Result<LockClient, WorkerError> {
    if task.key.is_empty() || task.key.len() > MAX_KEY_BYTES {
        return Err(WorkerError::Key(task.key.len()));
    }
    if let Some((flag, reason)) = task.lock_options().conflict() {
        return Err(WorkerError::Conflict(flag, reason));
    }
    let backend = open(task, env)?;
    let settings = LockSettings {
        ttl: task.ttl,
        seed: task.seed,
    };
    Ok(LockClient::new(backend, settings, metrics)?)
}

fn open(task: &WorkerTask, env: Env) -> Result<Arc<dyn LockBackend>, WorkerError> {
    let lock = task.lock_options();
    #[cfg(debug_assertions)]
    if let Some(mutant) = task.mutant
        && !services::changes(mutant, &lock)
    {
        let reason = format!("{mutant} changes nothing about this lock");
        return Err(WorkerError::Conflict("mutant", reason));
    }
    #[cfg(debug_assertions)]
    let defect = task.mutant;
    #[cfg(not(debug_assertions))]
    let defect = None;
    Ok(services::open(&lock, &task.endpoints, defect, env)?)
}

/// Completes only when the page cannot be served.
async fn metrics_page(address: Option<SocketAddr>, metrics: &LockMetrics) -> WorkerError {
    let Some(address) = address else {
        return std::future::pending().await;
    };
    let mut registry = Registry::default();
    metrics.register(&mut registry);
    match serve_metrics(address, registry).await {
        Ok(()) => std::future::pending().await,
        Err(source) => WorkerError::Metrics { address, source },
    }
}
