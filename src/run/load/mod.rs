//! A case of `kind: load`: this process makes the load on servers in containers or anywhere else,
//! and writes what it measures to disk as it goes.

mod addresses;
mod local;
mod plots;
mod recording;
mod resource_process;

pub use addresses::ServerAddresses;
pub use local::{LocalRequest, run_local};
pub use plots::{draw_plots, write_plots};

use super::evidence::Evidence;
use super::play::PlayResult;
use super::{RunError, RunResult};
use crate::clock::raw_monotonic_ns;
use crate::load::{ContendPart, LoadError, LoadPlan, LoadResult, Targets, contend, keyspace};
use crate::model::{CaseNotes, LoadRecord, format_duration};
use crate::progress::Task;
use crate::scenario::Setup;
use parking_lot::Mutex;
use recording::Recording;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;

/// Rows are on disk after this time at the latest.
const FLUSH_EVERY: Duration = Duration::from_secs(1);
/// The time that a load may take to release its locks after it was told to stop.
const LAST_WORDS: Duration = Duration::from_secs(10);
/// The same for a keyspace: millions of keys are not removed in a moment.
const LAST_WORDS_OF_A_KEYSPACE: Duration = Duration::from_secs(120);

pub struct LoadRun<'a> {
    pub plan: &'a LoadPlan,
    pub setup: &'a Setup,
    pub targets: Targets,
    pub seed: u64,
    pub evidence: &'a Evidence,
    pub task: &'a dyn Task,
    pub interrupt: &'a CancellationToken,
}

impl LoadRun<'_> {
    /// Makes the load until its end or its deadline. A load that was cut short keeps what it has,
    /// with the reason.
    pub async fn run(self) -> RunResult<PlayResult> {
        let recording = Arc::new(Recording::open(self.evidence.folder())?);
        let so_far = Mutex::new(LoadRecord::default());
        let ended = self.until_its_end(&recording, &so_far).await;
        let ended_ns = raw_monotonic_ns();
        recording.flush();
        recording.check()?;
        self.evidence.check()?;
        let mut record = so_far.into_inner();
        let mut gaps = Vec::new();
        match ended {
            Ok(()) => {}
            Err(LoadError::CutShort(_)) if self.interrupt.is_cancelled() => {
                return Err(RunError::Interrupted);
            }
            Err(LoadError::CutShort(reason)) => {
                gaps.push(format!("the load was cut short: {reason}").into());
                record.partial = Some(reason);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(PlayResult {
            notes: CaseNotes {
                workers: recording.workers(),
                gaps,
                ended_ns: Some(ended_ns),
                load: Some(record),
                ..CaseNotes::default()
            },
            unanswered: recording.unanswered(),
            observers: Vec::new(),
        })
    }

    async fn until_its_end(
        &self,
        recording: &Arc<Recording>,
        so_far: &Mutex<LoadRecord>,
    ) -> LoadResult {
        let stop = self.interrupt.child_token();
        let mut load = pin!(self.make(recording, so_far, &stop));
        let mut flush = interval(FLUSH_EVERY);
        flush.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut out_of_patience = pin!(async {
            tokio::select! {
                () = self.interrupt.cancelled() => {}
                () = sleep(self.setup.deadline) => stop.cancel(),
            }
            sleep(self.last_words()).await;
        });
        loop {
            tokio::select! {
                ended = &mut load => return self.why(ended, &stop),
                () = &mut out_of_patience => {
                    let limit = format_duration(self.last_words());
                    let silent = format!("and did not end within {limit} of being told to");
                    return self.why(Err(LoadError::CutShort(silent)), &stop);
                }
                _ = flush.tick() => {
                    recording.flush();
                    if recording.check().is_err() || self.evidence.check().is_err() {
                        // The caller finds the error where it is kept.
                        return Err(LoadError::CutShort("the disk".to_owned()));
                    }
                }
            }
        }
    }

    fn last_words(&self) -> Duration {
        match self.plan {
            LoadPlan::Contend(_) => LAST_WORDS,
            LoadPlan::Keyspace(_) => LAST_WORDS_OF_A_KEYSPACE,
        }
    }

    /// Adds the deadline to the reason, if it was the deadline: a load that is told to stop does
    /// not know why.
    fn why(&self, ended: LoadResult, stop: &CancellationToken) -> LoadResult {
        match ended {
            Err(LoadError::CutShort(reason))
                if stop.is_cancelled() && !self.interrupt.is_cancelled() =>
            {
                let limit = format_duration(self.setup.deadline);
                let words = format!("gave up after {limit}: {reason}");
                Err(LoadError::CutShort(words))
            }
            ended => ended,
        }
    }

    async fn make(
        &self,
        recording: &Arc<Recording>,
        so_far: &Mutex<LoadRecord>,
        stop: &CancellationToken,
    ) -> LoadResult {
        let tell = |change: &dyn Fn(&mut LoadRecord)| {
            let mut record = so_far.lock();
            change(&mut record);
            recording.flush();
            self.evidence.load(&recording.workers(), &record);
        };
        match self.plan {
            LoadPlan::Contend(plan) => {
                let mut on_part = |part: ContendPart<'_>| {
                    tell(&|record| match part {
                        ContendPart::Uncontended(alone) => record.uncontended = Some(alone.clone()),
                        ContendPart::Step(step) => record.steps.push(step.clone()),
                    });
                };
                let recorder = Arc::clone(recording) as Arc<_>;
                let (targets, seed) = (&self.targets, self.seed);
                contend(plan, targets, seed, recorder, self.task, stop, &mut on_part).await
            }
            LoadPlan::Keyspace(plan) => {
                let mut on_sample = |sample: &_| {
                    tell(&|record| record.keyspace = Some(Clone::clone(sample)));
                };
                let servers = &self.targets.lock_servers;
                keyspace(
                    plan,
                    self.setup.lock.backend,
                    servers,
                    self.seed,
                    self.task,
                    stop,
                    &mut on_sample,
                )
                .await
            }
        }
    }
}
