use super::alive::MadeOverTime;
use super::effort::{self, Effort};
use super::redis_figures::{Facts, figures};
use super::redis_info::{RedisInfo, look};
use super::scan::Scan;
use super::{sample_every, ticks};
use crate::load::KeyspacePlan;
use crate::load::generate::{Commands, Done, Each, Stop, Stream, Target, lanes};
use crate::load::{LoadError, LoadResult, Names};
use crate::model::{KeyspaceRecord, KeyspaceSample, RedisKeyspace, format_count};
use crate::progress::Task;
use fencing_lock::servers::bounded_redis::RedisConnection;
use redis::RedisError;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Enough commands per batch to keep one Redis busy.
const PIPELINE: u64 = 100;
const CONNECTIONS: u32 = 2;
/// How often the number of keys is noted. The number of live keys follows from it.
const NOTED_EVERY: Duration = Duration::from_millis(50);
/// The longest watch. Expired keys among many live ones can stay for very long.
const LONGEST_WATCH: Duration = Duration::from_secs(600);

/// Makes the counters, if there are any, then the locks, and watches what happens to them.
/// Nobody touches the keys meanwhile, so the server's own cycle finds the expired ones, except
/// those that the scan finds and counts.
pub(super) async fn experiment(
    plan: &KeyspacePlan,
    address: &str,
    names: Names,
    task: &dyn Task,
    interrupt: &CancellationToken,
    on_sample: &mut (dyn FnMut(&KeyspaceRecord) + Send),
) -> LoadResult {
    let target = Target::parse(address)?;
    let mut asking = target.ask().await?;
    let failed = |error| target.failure(error);
    let before = look(&mut asking).await.map_err(failed)?;
    let effort = Effort::set(plan.effort, &mut asking).await;
    let effort = effort.map_err(|error| {
        LoadError::Usage(format!(
            "effort: {} does not let it be set: {error}",
            target.shown
        ))
    })?;
    let facts = Facts {
        before,
        now: before,
        effort: effort::read(&mut asking)
            .await
            .ok()
            .flatten()
            .and_then(|effort| effort.parse().ok()),
        ..Facts::default()
    };
    let mut experiment = Experiment {
        plan,
        target: &target,
        names,
        task,
        on_sample,
        started: Instant::now(),
        locks: MadeOverTime::new(plan.ttl),
        counters: MadeOverTime::new(plan.counters.unwrap_or_default()),
        facts,
        lazily: 0,
        samples: Vec::new(),
        asking,
    };
    let ended = experiment.run(interrupt).await;
    // This comes first because it takes no time. Removing keys may be slow, and the user may
    // lose patience.
    let put_back = effort.put_back(&mut experiment.asking).await;
    let removed = experiment.remove().await;
    ended?;
    removed?;
    put_back.map_err(failed)
}

struct Experiment<'a> {
    plan: &'a KeyspacePlan,
    target: &'a Target,
    asking: RedisConnection,
    names: Names,
    task: &'a dyn Task,
    on_sample: &'a mut (dyn FnMut(&KeyspaceRecord) + Send),
    started: Instant,
    locks: MadeOverTime,
    counters: MadeOverTime,
    facts: Facts,
    /// Keys that were reclaimed because a command met them.
    lazily: u64,
    samples: Vec<KeyspaceSample>,
}

impl Experiment<'_> {
    async fn run(&mut self, interrupt: &CancellationToken) -> LoadResult {
        if let Some(idle) = self.plan.counters {
            self.fill(Each::Counter { idle }, interrupt).await?;
            self.facts.counters = Some((self.counters.total(), self.facts.now));
        }
        let ttl = self.plan.ttl;
        self.fill(Each::Lock { ttl }, interrupt).await?;
        self.facts.last_death_ms = self.locks.last_death_ms();
        self.watch(interrupt).await
    }

    async fn fill(&mut self, each: Each, interrupt: &CancellationToken) -> LoadResult {
        let commands = Commands::new(self.names.clone(), each);
        let stream = stream(self.target, &commands);
        let done = Done::default();
        let (over, stop) = (CancellationToken::new(), interrupt.child_token());
        let filling = async {
            let filled = stream.run(lanes(self.plan.keys), &done, &stop).await;
            over.cancel();
            filled
        };
        let watching = async {
            let watched = self.sample_until(&over, each, &done).await;
            if watched.is_err() {
                stop.cancel();
            }
            watched
        };
        let (filled, watched) = tokio::join!(filling, watching);
        watched?;
        filled.map_err(|stop| self.cut(&stop))
    }

    async fn sample_until(
        &mut self,
        over: &CancellationToken,
        each: Each,
        done: &Done,
    ) -> LoadResult {
        let mut ticks = ticks(NOTED_EVERY);
        let mut next_sample = Instant::now();
        let from_ms = self.now_ms();
        loop {
            let is_over = tokio::select! {
                () = over.cancelled() => true,
                _ = ticks.tick() => false,
            };
            let at_ms = self.now_ms();
            let phase = match each {
                Each::Lock { .. } => {
                    self.locks.note(at_ms, done.made());
                    self.facts.made = done.made();
                    self.facts.refused = done.refused();
                    self.facts.made_in_ms = at_ms - from_ms;
                    "filling"
                }
                Each::Counter { .. } | Each::Unlink => {
                    self.counters.note(at_ms, done.made());
                    "counters"
                }
            };
            if is_over || Instant::now() >= next_sample {
                next_sample = Instant::now() + sample_every(self.plan);
                self.sample(phase).await?;
                let (made, keys) = (done.made(), self.plan.keys);
                let detail = format!("{phase}: {} of {}", format_count(made), format_count(keys));
                self.task.reached(made, keys, &detail);
            }
            if is_over {
                return Ok(());
            }
        }
    }

    /// Watches until no expired key is left, or for as long as the plan says.
    async fn watch(&mut self, interrupt: &CancellationToken) -> LoadResult {
        let death_ms = self.facts.last_death_ms.unwrap_or_default();
        let end_ms = match self.plan.watch {
            Some(watch) => self.now_ms() + watch.as_millis() as u64,
            None => death_ms + LONGEST_WATCH.as_millis() as u64,
        };
        let mut ticks = ticks(sample_every(self.plan));
        loop {
            tokio::select! {
                () = interrupt.cancelled() => return Err(self.cut(&Stop::Interrupted)),
                _ = ticks.tick() => {}
            }
            let now_ms = self.now_ms();
            let alive = self.locks.alive(now_ms);
            let phase = match alive {
                0 if self.facts.scan.is_some() => "scanned",
                0 => "dead",
                alive if alive == self.locks.total() => "alive",
                _ => "expiring",
            };
            let mut dead = self.sample(phase).await?;
            let detail = format!("{phase}: {} dead and still there", format_count(dead));
            self.task.detail(&detail);
            if alive == 0 && self.plan.scan && self.facts.scan.is_none() {
                self.scan(interrupt).await?;
                dead = self.sample("scanned").await?;
            }
            let is_over = self.plan.watch.is_none() && alive == 0 && dead == 0;
            if is_over || now_ms >= end_ms {
                return Ok(());
            }
        }
    }

    async fn scan(&mut self, interrupt: &CancellationToken) -> LoadResult {
        let (from, earlier) = (Instant::now(), self.lazily);
        let mut scan = Scan::default();
        let mut next_sample = from + sample_every(self.plan);
        while !scan.is_over && from.elapsed() < LONGEST_WATCH {
            if interrupt.is_cancelled() {
                return Err(self.cut(&Stop::Interrupted));
            }
            let step = scan.step(&mut self.asking).await;
            step.map_err(|error| self.lost(error))?;
            self.lazily = earlier + scan.reclaimed;
            if Instant::now() >= next_sample {
                next_sample = Instant::now() + sample_every(self.plan);
                self.sample("scanning").await?;
            }
        }
        let took_ms = from.elapsed().as_millis() as u64;
        self.facts.scan = Some((took_ms, scan.reclaimed, scan.found));
        Ok(())
    }

    /// Takes a sample, reports the record, and returns how many keys have expired and still exist.
    async fn sample(&mut self, phase: &str) -> LoadResult<u64> {
        let seen = look(&mut self.asking).await;
        let seen: RedisInfo = seen.map_err(|error| self.lost(error))?;
        let at_ms = self.now_ms();
        self.facts.now = seen;
        let before = &self.facts.before;
        let expired = seen.expired.saturating_sub(before.expired);
        let sample = KeyspaceSample {
            at_ms,
            phase: phase.to_owned(),
            used_memory: seen.used_memory,
            used_memory_rss: seen.used_memory_rss,
            present: seen.keys.saturating_sub(before.keys),
            alive: self.locks.alive(at_ms) + self.counters.alive(at_ms),
            expired,
            expired_active: expired.saturating_sub(self.lazily),
            expired_stale_share: seen.stale_share,
        };
        let dead = sample.present.saturating_sub(sample.alive);
        self.samples.push(sample);
        let redis = RedisKeyspace {
            keys: self.plan.keys,
            ttl_ms: self.plan.ttl.as_millis() as u64,
            made_in_ms: self.facts.made_in_ms,
            samples: self.samples.clone(),
            figures: figures(&self.facts, &self.samples),
        };
        (self.on_sample)(&KeyspaceRecord {
            redis: Some(redis),
            etcd: None,
        });
        Ok(dead)
    }

    /// Removes our keys by their names, and nothing else. Keys that were already reclaimed need
    /// no removal.
    async fn remove(&mut self) -> LoadResult {
        let made = self.locks.total() + self.counters.total();
        let is_gone = self.samples.last().is_some_and(|last| {
            last.present == 0 && self.locks.alive(last.at_ms) == 0 && self.counters.total() == 0
        });
        if made == 0 || is_gone {
            return Ok(());
        }
        self.task.detail("removing what is left");
        let commands = Commands::new(self.names.clone(), Each::Unlink);
        let stream = stream(self.target, &commands);
        let (done, never) = (Done::default(), CancellationToken::new());
        let removed = stream.run(lanes(self.plan.keys), &done, &never).await;
        removed.map_err(|stop| {
            LoadError::CutShort(format!(
                "{stop}; keys from {} on may be left, until they run out",
                self.names.name(0)
            ))
        })
    }

    fn now_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    fn lost(&self, error: RedisError) -> LoadError {
        self.cut(&Stop::Lost(error.to_string()))
    }

    fn cut(&self, stop: &Stop) -> LoadError {
        let (made, keys) = (self.locks.total(), self.plan.keys);
        let (made, keys) = (format_count(made), format_count(keys));
        LoadError::CutShort(format!("{stop}; {made} of {keys} locks were made"))
    }
}

/// Makes a stream without a marker: nothing is resumed here, because an experiment that is cut
/// short removes its keys.
fn stream<'a>(target: &'a Target, commands: &'a Commands) -> Stream<'a> {
    Stream {
        target,
        commands,
        pipeline: PIPELINE,
        connections: CONNECTIONS,
        marker: None,
    }
}
