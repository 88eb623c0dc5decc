//! Fills a Redis with a great many short-lived locks: the same ones from the same seed,
//! streamed, and resumed where an earlier fill ended.

mod commands;
mod lanes;
mod names;
mod replies;
mod stream;
mod target;
mod wire;

pub(super) use commands::{Commands, Each};
pub(super) use lanes::lanes;
pub use names::Names;
pub(super) use stream::{Done, Stop, Stream};
pub(super) use target::{Target, said};

use super::memory::peak_memory_kib;
use super::{LoadError, LoadResult};
use crate::model::{format_count, format_duration};
use crate::progress::Task;
use lanes::{Lane, Marker, left, resumed};
use redis::aio::MultiplexedConnection;
use redis::{InfoDict, cmd};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

const LONGEST_TTL: Duration = Duration::from_secs(24 * 60 * 60);
const MOST_PIPELINE: u32 = 1_000;
const MOST_CONNECTIONS: u32 = 64;
const SHOWN_EVERY: Duration = Duration::from_millis(100);

#[derive(Clone, Debug, PartialEq)]
pub struct GeneratePlan {
    pub keys: u64,
    pub ttl: Duration,
    pub seed: u64,
    /// The number of commands in one batch on one connection.
    pub pipeline: u32,
    pub connections: u32,
    /// Start with the first key, however far an earlier fill came.
    pub restart: bool,
}

impl GeneratePlan {
    /// Returns what is wrong with the plan, each with the field.
    pub fn mistakes(&self) -> Vec<(&'static str, String)> {
        let mut mistakes = Vec::new();
        if self.keys == 0 {
            mistakes.push(("keys", "at least one key is needed".to_owned()));
        }
        if self.ttl < Duration::from_millis(1) || self.ttl > LONGEST_TTL {
            let text = format!("from 1ms to 1440m, not {}", format_duration(self.ttl));
            mistakes.push(("ttl", text));
        }
        let ranges = [
            ("pipeline", self.pipeline, MOST_PIPELINE),
            ("connections", self.connections, MOST_CONNECTIONS),
        ];
        for (field, value, most) in ranges {
            if value == 0 || value > most {
                mistakes.push((field, format!("from 1 to {most}, not {value}")));
            }
        }
        mistakes
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Generated {
    /// Keys that an earlier fill made, which this one resumed.
    pub before: u64,
    pub made: u64,
    /// Keys that existed already, whoever made them.
    pub refused: u64,
    /// Keys that the server evicted meanwhile to make room. If this is not 0, some of the keys
    /// that were made are gone.
    pub evicted: u64,
    pub elapsed: Duration,
    pub peak_memory_kib: u64,
}

/// Returns the names that a fill gives to its locks.
pub fn generated_names(seed: u64) -> Names {
    Names::new("gen", seed)
}

/// Makes the locks, or the rest of them. The progress is kept in the server, so a fill that was
/// ended, even by a kill, continues where it was. Once everything that it made has expired, it
/// starts from the beginning.
pub async fn generate(
    plan: &GeneratePlan,
    address: &str,
    task: &dyn Task,
    interrupt: &CancellationToken,
) -> LoadResult<Generated> {
    LoadError::refuse(plan.mistakes())?;
    let target = Target::parse(address)?;
    let mut asking = target.ask().await?;
    let marker = Marker::new(plan.seed, plan.keys, plan.ttl);
    if plan.restart {
        forget(&target, &mut asking, &marker).await?;
    }
    let lanes = remaining(&target, &mut asking, &marker, plan.keys).await?;
    let evicted_before = evicted(&target, &mut asking).await?;
    let before = plan.keys - left(&lanes);
    if before > 0 {
        task.detail(&format!("goes on after {}", format_count(before)));
    }
    let fill = Fill {
        plan,
        target: &target,
        marker: &marker,
        before,
        started: Instant::now(),
        done: Done::default(),
    };
    let ended = fill.run(lanes, task, interrupt).await;
    if let Err(stop) = ended {
        return Err(LoadError::CutShort(fill.partial(&stop)));
    }
    let mut generated = fill.summary();
    let evicted_now = evicted(&target, &mut asking).await?;
    generated.evicted = evicted_now.saturating_sub(evicted_before);
    forget(&target, &mut asking, &marker).await?;
    Ok(generated)
}

struct Fill<'a> {
    plan: &'a GeneratePlan,
    target: &'a Target,
    marker: &'a Marker,
    before: u64,
    started: Instant,
    done: Done,
}

impl Fill<'_> {
    async fn run(
        &self,
        lanes: Vec<Lane>,
        task: &dyn Task,
        interrupt: &CancellationToken,
    ) -> Result<(), Stop> {
        let each = Each::Lock { ttl: self.plan.ttl };
        let commands = Commands::new(generated_names(self.plan.seed), each);
        let stream = Stream {
            target: self.target,
            commands: &commands,
            pipeline: self.plan.pipeline.into(),
            connections: self.plan.connections,
            marker: Some(self.marker),
        };
        let mut filling = std::pin::pin!(stream.run(lanes, &self.done, interrupt));
        let mut ticks = tokio::time::interval(SHOWN_EVERY);
        loop {
            tokio::select! {
                ended = &mut filling => return ended,
                _ = ticks.tick() => self.show(task),
            }
        }
    }

    fn show(&self, task: &dyn Task) {
        let now = self.done.made() + self.done.refused();
        let per_s = now as f64 / self.started.elapsed().as_secs_f64().max(0.001);
        let left_s = (self.plan.keys - self.before - now) as f64 / per_s.max(1.0);
        let detail = format!(
            "{} of {}, {} a second, {left_s:.0} s left",
            format_count(self.before + now),
            format_count(self.plan.keys),
            format_count(per_s as u64),
        );
        task.reached(self.before + now, self.plan.keys, &detail);
    }

    fn summary(&self) -> Generated {
        Generated {
            before: self.before,
            made: self.done.made(),
            refused: self.done.refused(),
            evicted: 0,
            elapsed: self.started.elapsed(),
            peak_memory_kib: peak_memory_kib(),
        }
    }

    fn partial(&self, stop: &Stop) -> String {
        let (made, refused) = (self.done.made(), self.done.refused());
        let keys = self.plan.keys;
        let remedy = match stop {
            Stop::OutOfMemory(_) => {
                "give it a higher `maxmemory`, or wait until locks have run out; then "
            }
            _ => "",
        };
        format!(
            "{stop}; {} of {} keys are made (partial), {} of them now, {} were there already; \
             {remedy}the same command goes on from there within {} (--restart begins anew)",
            format_count(self.before + made + refused),
            format_count(keys),
            format_count(made),
            format_count(refused),
            format_duration(self.plan.ttl),
        )
    }
}

async fn forget(
    target: &Target,
    asking: &mut MultiplexedConnection,
    marker: &Marker,
) -> LoadResult {
    let deleted = cmd("DEL").arg(&marker.key).query_async::<()>(asking).await;
    deleted.map_err(|error| target.failure(error))
}

async fn evicted(target: &Target, asking: &mut MultiplexedConnection) -> LoadResult<u64> {
    let stats = cmd("INFO").arg("stats").query_async(asking).await;
    let stats: InfoDict = stats.map_err(|error| target.failure(error))?;
    said(&stats, "evicted_keys").map_err(|error| target.failure(error))
}

async fn remaining(
    target: &Target,
    asking: &mut MultiplexedConnection,
    marker: &Marker,
    keys: u64,
) -> LoadResult<Vec<Lane>> {
    let marked = cmd("HGETALL").arg(&marker.key).query_async(asking).await;
    let marked: BTreeMap<String, String> = marked.map_err(|error| target.failure(error))?;
    resumed(keys, &marked).map_err(|reason| {
        let key = &marker.key;
        LoadError::Usage(format!(
            "the marker {key} is none of ours: {reason}; --restart begins anew"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mistake_is_told_at_once() {
        let good = GeneratePlan {
            keys: 1,
            ttl: Duration::from_secs(60),
            seed: 1,
            pipeline: 100,
            connections: 2,
            restart: false,
        };
        assert_eq!(good.mistakes(), []);
        let bad = GeneratePlan {
            keys: 0,
            ttl: Duration::ZERO,
            pipeline: 0,
            connections: 65,
            ..good
        };
        let fields: Vec<&str> = bad.mistakes().iter().map(|(field, _)| *field).collect();
        assert_eq!(fields, ["keys", "ttl", "pipeline", "connections"]);
    }
}
