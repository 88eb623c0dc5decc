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

use super::LoadError;
use crate::model::{KeyspacePlan, KeyspaceRecord, LockServers};
use crate::progress::Task;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Makes the keys at these servers (`host:port`) and watches what becomes of them;
/// the record so far is told at every sample.
///
/// Everything that it makes is removed at the end, also after an error or when it
/// is interrupted: interrupt it, and do not drop it. It should have the servers for
/// itself: what others do to them is in its figures, and two things concern others. On
/// Redis, a plan with an effort changes that of the server until the end. On
/// etcd, the history of the whole store is compacted, up to the revision at
/// which the last of our keys was gone, and every server named is defragmented.
pub async fn keyspace(
    plan: &KeyspacePlan,
    kind: LockServers,
    servers: &[String],
    seed: u64,
    task: &dyn Task,
    interrupt: &CancellationToken,
    on_sample: &mut (dyn FnMut(&KeyspaceRecord) + Send),
) -> Result<(), LoadError> {
    let mut mistakes: Vec<String> = plan
        .mistakes_at(kind)
        .into_iter()
        .map(|(field, text)| format!("{field}: {text}"))
        .collect();
    if servers.is_empty() || kind == LockServers::OneRedis && servers.len() > 1 {
        let count = servers.len();
        mistakes.push(format!("servers: {kind} is needed, and {count} are named"));
    }
    if !mistakes.is_empty() {
        return Err(LoadError::Usage(mistakes.join("\n")));
    }
    let names = super::Names::new("keyspace", seed);
    match kind {
        LockServers::Etcd => {
            etcd::experiment(plan, servers, names, task, interrupt, on_sample).await
        }
        LockServers::OneRedis | LockServers::RedisNodes => {
            redis::experiment(plan, &servers[0], names, task, interrupt, on_sample).await
        }
    }
}

/// About once a second, more often where everything is over soon, and less often
/// where somebody watches for long: every sample is kept, and written at once.
fn sample_every(plan: &KeyspacePlan) -> Duration {
    const SAMPLES_MAX: u32 = 1_000;
    let soon = (plan.ttl / 10).clamp(Duration::from_millis(100), Duration::from_secs(1));
    soon.max((plan.ttl + plan.watch.unwrap_or_default()) / SAMPLES_MAX)
}
