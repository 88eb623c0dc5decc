use super::etcd_growth::{Facts, extrapolation, figures};
use super::etcd_servers::{Leases, Servers, Stop};
use super::{sample_every, ticks};
use crate::load::KeyspacePlan;
use crate::load::{LoadError, LoadResult, Names};
use crate::model::{EtcdGrowth, EtcdSample, KeyspaceRecord, format_count};
use crate::progress::Task;
use futures_util::future::join_all;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The number of concurrent requests. It is enough to keep a cluster busy, because etcd writes
/// its log in batches.
const AT_ONCE: usize = 64;
/// The rate at which leases are expected to end, to limit the watch. etcd ends at most a
/// thousand per second by itself, and a busy one may be slower.
const ENDED_PER_S: u64 = 100;
const LONGEST_REST: Duration = Duration::from_secs(60);

/// Measures what leases with one key each, their end, compaction and defragmentation do to the
/// database.
pub(super) async fn experiment(
    plan: &KeyspacePlan,
    servers: &[String],
    names: Names,
    task: &dyn Task,
    interrupt: &CancellationToken,
    on_sample: &mut (dyn FnMut(&KeyspaceRecord) + Send),
) -> LoadResult {
    let servers = Servers::connect(servers, names).await?;
    let full = servers.full_members().await;
    if !full.is_ok_and(|members| members.is_empty()) {
        let text = "this etcd is full already (or does not say): compact and defragment it, \
                    and `etcdctl alarm disarm`";
        return Err(LoadError::CutShort(text.to_owned()));
    }
    let mut experiment = Experiment {
        plan,
        servers: &servers,
        task,
        on_sample,
        started: Instant::now(),
        facts: Facts::default(),
        leases: Leases::default(),
        samples: Vec::new(),
    };
    let ended = experiment.run(interrupt).await;
    let was_full = matches!(ended, Err(Stop::Full(_)));
    let revoked = experiment.revoke(ended.is_ok()).await;
    // A full store accepts no writes until there is room, and our keys fill it.
    let freed = match ended.is_ok() || was_full {
        true => experiment.give_back(was_full).await,
        false => Ok(()),
    };
    let cut = |stop: Stop| {
        let (made, keys) = (experiment.leases.granted(), plan.keys);
        let (made, keys) = (format_count(made), format_count(keys));
        LoadError::CutShort(format!("{stop}; {made} of {keys} leases were granted"))
    };
    ended.and(revoked).and(freed).map_err(cut)
}

struct Experiment<'a> {
    plan: &'a KeyspacePlan,
    servers: &'a Servers,
    task: &'a dyn Task,
    on_sample: &'a mut (dyn FnMut(&KeyspaceRecord) + Send),
    started: Instant,
    facts: Facts,
    leases: Leases,
    samples: Vec<EtcdSample>,
}

impl Experiment<'_> {
    async fn run(&mut self, interrupt: &CancellationToken) -> Result<(), Stop> {
        self.sample("before").await?;
        self.grant(interrupt).await?;
        self.watch(interrupt).await
    }

    /// Grants leases and their keys, many at once, and takes samples meanwhile.
    async fn grant(&mut self, interrupt: &CancellationToken) -> Result<(), Stop> {
        let (servers, plan) = (self.servers, self.plan);
        let (over, stop) = (CancellationToken::new(), interrupt.child_token());
        let next = AtomicU64::new(0);
        let leases = std::mem::take(&mut self.leases);
        let granting = async {
            let workers = (0..AT_ONCE).map(|_| async {
                while !stop.is_cancelled() {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= plan.keys {
                        return Ok(());
                    }
                    let granted = servers.grant(plan.ttl, index, &leases).await;
                    if granted.is_err() {
                        stop.cancel();
                    }
                    granted?;
                }
                Err(Stop::Interrupted)
            });
            let ended = join_all(workers).await;
            over.cancel();
            first_reason(ended)
        };
        let watching = async {
            let mut ticks = ticks(sample_every(plan));
            loop {
                let is_over = tokio::select! {
                    () = over.cancelled() => true,
                    _ = ticks.tick() => false,
                };
                self.facts.granted = leases.granted();
                self.facts.granted_in_ms = self.now_ms();
                if let Err(reason) = self.sample("granting").await {
                    stop.cancel();
                    return Err(reason);
                }
                let (made, keys) = (self.facts.granted, plan.keys);
                let detail = format!("{} of {}", format_count(made), format_count(keys));
                self.task.reached(made, keys, &detail);
                if is_over {
                    return Ok(());
                }
            }
        };
        let (granted, watched) = tokio::join!(granting, watching);
        self.leases = leases;
        first_reason([granted, watched])
    }

    /// Watches until all leases have expired, or for as long as the plan says.
    async fn watch(&mut self, interrupt: &CancellationToken) -> Result<(), Stop> {
        let rest = Duration::from_secs(self.plan.keys / ENDED_PER_S) + LONGEST_REST;
        let limit = self.plan.watch.unwrap_or(self.plan.ttl + rest);
        let end = Instant::now() + limit;
        let mut ticks = ticks(sample_every(self.plan));
        loop {
            tokio::select! {
                () = interrupt.cancelled() => return Err(Stop::Interrupted),
                _ = ticks.tick() => {}
            }
            let is_any_over = Duration::from_millis(self.now_ms()) >= self.plan.ttl;
            let phase = if is_any_over { "expiring" } else { "alive" };
            let left = self.sample(phase).await?;
            self.task
                .detail(&format!("{phase}: {} are left", format_count(left)));
            let is_over = self.plan.watch.is_none() && left == 0;
            if is_over || Instant::now() >= end {
                return Ok(());
            }
        }
    }

    /// Revokes the leases that have not expired by themselves. If all went well, a lease
    /// without its key has ended; otherwise there may be leases that never had a key.
    async fn revoke(&mut self, went_well: bool) -> Result<(), Stop> {
        let ids = self.leases.ids();
        if ids.is_empty() || went_well && self.servers.count().await?.0 == 0 {
            return Ok(());
        }
        self.task.detail("revoking what is left");
        let (servers, from) = (self.servers, Instant::now());
        let next = AtomicU64::new(0);
        let workers = (0..AT_ONCE).map(|_| async {
            while let Some(lease) = ids.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                servers.revoke(*lease).await?;
            }
            Ok(())
        });
        let revoked = first_reason(join_all(workers).await);
        self.facts.revoked = Some((ids.len() as u64, from.elapsed().as_millis() as u64));
        revoked?;
        self.sample("revoked").await?;
        Ok(())
    }

    async fn give_back(&mut self, was_full: bool) -> Result<(), Stop> {
        self.task.detail("compacting and defragmenting");
        let (_, revision) = self.servers.count().await?;
        self.servers.compact(revision).await?;
        self.sample("compacted").await?;
        self.servers.defragment().await?;
        if was_full {
            self.servers.disarm().await?;
        }
        self.sample("defragmented").await?;
        Ok(())
    }

    /// Takes a sample, reports the record, and returns how many keys there are.
    async fn sample(&mut self, phase: &str) -> Result<u64, Stop> {
        let (keys, _) = self.servers.count().await?;
        let status = self.servers.status().await?;
        let at_ms = self.now_ms();
        let granted = self.facts.granted;
        let (earlier, earlier_ms) = self.facts.last_seen;
        let per_s = granted.saturating_sub(earlier) as f64 * 1000.0
            / at_ms.saturating_sub(earlier_ms).max(1) as f64;
        self.facts.last_seen = (granted, at_ms);
        let sample = EtcdSample {
            at_ms,
            phase: phase.to_owned(),
            leases: keys,
            granted_per_s: per_s,
            revision: status.revision,
            db_size: status.db_size,
            db_size_in_use: status.db_size_in_use,
            resident_memory: self.servers.resident_memory().await,
        };
        // After that, the first leases expire, and their end grows the database as well.
        if phase == "granting" && Duration::from_millis(at_ms) < self.plan.ttl {
            self.facts.growth.push((granted, sample.clone()));
        }
        self.samples.push(sample);
        let growth = EtcdGrowth {
            leases: granted,
            ttl_ms: self.plan.ttl.as_millis() as u64,
            samples: self.samples.clone(),
            figures: figures(&self.facts, &self.samples),
            extrapolation: extrapolation(&self.facts),
        };
        (self.on_sample)(&KeyspaceRecord {
            redis: None,
            etcd: Some(growth),
        });
        Ok(keys)
    }

    fn now_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }
}

/// Returns the first stop, but prefers a real reason over "interrupted".
fn first_reason(ended: impl IntoIterator<Item = Result<(), Stop>>) -> Result<(), Stop> {
    let stops = ended.into_iter().filter_map(Result::err);
    let reason = stops.reduce(|one, other| match one {
        Stop::Interrupted => other,
        one => one,
    });
    reason.map_or(Ok(()), Err)
}
