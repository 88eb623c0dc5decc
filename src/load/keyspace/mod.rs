//! A great many short-lived locks, and what they leave behind.

mod alive;
mod effort;
mod etcd;
mod etcd_growth;
mod etcd_servers;
mod least_squares;
mod redis;
mod redis_figures;
mod redis_info;
mod scan;

use super::{LoadError, LoadResult};
use crate::load::KeyspacePlan;
use crate::model::KeyspaceRecord;
use crate::progress::Task;
use crate::services::{Backend, Keyspace};
use std::time::Duration;
use tokio::time::{Interval, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// Makes the keys at these servers (`host:port`), watches what happens to them, and reports the
/// record so far at every sample.
///
/// It removes everything that it made at the end, also after an error or an interrupt:
/// interrupt it, and do not drop it. It should have the servers for itself, because the load of
/// others distorts its figures. Two things also affect others. On Redis, a plan with an effort
/// changes the server's effort until the end. On etcd, it compacts the history of the whole
/// store, up to the revision at which the last of our keys was gone, and defragments every
/// named server.
pub async fn keyspace(
    plan: &KeyspacePlan,
    backend: Backend,
    servers: &[String],
    seed: u64,
    task: &dyn Task,
    interrupt: &CancellationToken,
    on_sample: &mut (dyn FnMut(&KeyspaceRecord) + Send),
) -> LoadResult {
    let kind = backend.servers();
    let Some(keyspace) = backend.service().keyspace else {
        return Err(LoadError::Usage(format!(
            "servers: cannot measure the keys of {kind}: one Redis is measured at a time, or an etcd; name a single one"
        )));
    };
    let mut mistakes = plan.mistakes_at(keyspace);
    if servers.is_empty() || kind.at_most.is_some_and(|most| servers.len() > most) {
        let count = servers.len();
        mistakes.push((
            "servers",
            format!("{kind} is needed, and {count} are named"),
        ));
    }
    LoadError::refuse(mistakes)?;
    let names = super::Names::new("keyspace", seed);
    match keyspace {
        Keyspace::Etcd => etcd::experiment(plan, servers, names, task, interrupt, on_sample).await,
        Keyspace::Redis => {
            redis::experiment(plan, &servers[0], names, task, interrupt, on_sample).await
        }
    }
}

/// Returns the time between samples: about a second, less if everything is over soon, and more
/// for a long watch, because every sample is kept and written immediately.
fn sample_every(plan: &KeyspacePlan) -> Duration {
    const SAMPLES_MAX: u32 = 1_000;
    let soon = (plan.ttl / 10).clamp(Duration::from_millis(100), Duration::from_secs(1));
    soon.max((plan.ttl + plan.watch.unwrap_or_default()) / SAMPLES_MAX)
}

/// Returns a timer whose late ticks delay the following ones.
fn ticks(every: Duration) -> Interval {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

fn per_s(count: u64, ms: u64) -> f64 {
    count as f64 * 1000.0 / ms.max(1) as f64
}
