//! A case of `kind: load`: this process makes the load, at servers in containers
//! or anywhere else, and what it measures is on disk as it goes.

mod local;
mod plots;
mod recording;
mod resource_process;

pub use local::{LocalRequest, ServerAddresses, run_local};
pub use plots::{draw_plots, write_plots};

use super::RunError;
use super::evidence::Evidence;
use crate::clock::raw_monotonic_ns;
use crate::load::{LoadError, Targets, contend, keyspace};
use crate::model::{CaseNotes, LoadPlan, LoadRecord, LockServers, format_duration};
use crate::progress::Task;
use recording::Recording;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;

/// How old what is not on disk yet may be.
const FLUSH_EVERY: Duration = Duration::from_secs(1);
/// What a load that was told to stop may take to give back what it holds.
const LAST_WORDS: Duration = Duration::from_secs(10);
/// Millions of keys are not removed in a moment.
const LAST_WORDS_OF_A_KEYSPACE: Duration = Duration::from_secs(120);

/// One load, and where it goes.
pub struct LoadRun<'a> {
    pub plan: &'a LoadPlan,
    pub kind: LockServers,
    pub targets: Targets,
    pub seed: u64,
    pub deadline: Duration,
    pub evidence: &'a Evidence,
    pub task: &'a dyn Task,
    pub interrupt: &'a CancellationToken,
}

/// What is known of a load when it is over.
pub struct Loaded {
    pub notes: CaseNotes,
    /// Some write may still be under way.
    pub unanswered: bool,
}

impl LoadRun<'_> {
    /// Makes the load to its end, or to its deadline. One that was cut short keeps
    /// what it has, and says why.
    pub async fn run(self) -> Result<Loaded, RunError> {
        let recording = Arc::new(Recording::open(self.evidence.folder())?);
        let so_far = Mutex::new(LoadRecord::default());
        let ended = self.until_its_end(&recording, &so_far).await;
        let ended_ns = raw_monotonic_ns();
        recording.flush();
        recording.check()?;
        self.evidence.check()?;
        let mut record = so_far.into_inner().unwrap_or_else(PoisonError::into_inner);
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
        Ok(Loaded {
            notes: CaseNotes {
                workers: recording.workers(),
                gaps,
                ended_ns: Some(ended_ns),
                load: Some(record),
                ..CaseNotes::default()
            },
            unanswered: recording.unanswered(),
        })
    }

    async fn until_its_end(
        &self,
        recording: &Arc<Recording>,
        so_far: &Mutex<LoadRecord>,
    ) -> Result<(), LoadError> {
        let stop = self.interrupt.child_token();
        let mut load = pin!(self.make(recording, so_far, &stop));
        let mut flush = interval(FLUSH_EVERY);
        flush.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut out_of_patience = pin!(async {
            tokio::select! {
                () = self.interrupt.cancelled() => {}
                () = sleep(self.deadline) => stop.cancel(),
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

    /// What was told to stop says only that; whether that was the deadline is known here.
    fn why(&self, ended: Result<(), LoadError>, stop: &CancellationToken) -> Result<(), LoadError> {
        match ended {
            Err(LoadError::CutShort(reason))
                if stop.is_cancelled() && !self.interrupt.is_cancelled() =>
            {
                let limit = format_duration(self.deadline);
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
    ) -> Result<(), LoadError> {
        let tell = |change: &dyn Fn(&mut LoadRecord)| {
            let mut record = lock(so_far);
            change(&mut record);
            recording.flush();
            self.evidence.load(&recording.workers(), &record);
        };
        match self.plan {
            LoadPlan::Contend(plan) => {
                let mut on_step = |step: &_| {
                    tell(&|record| record.steps.push(Clone::clone(step)));
                };
                let recorder = Arc::clone(recording) as Arc<_>;
                let (targets, seed) = (&self.targets, self.seed);
                contend(plan, targets, seed, recorder, self.task, stop, &mut on_step).await
            }
            LoadPlan::Keyspace(plan) => {
                let mut on_sample = |sample: &_| {
                    tell(&|record| record.keyspace = Some(Clone::clone(sample)));
                };
                let servers = &self.targets.lock_servers;
                keyspace(
                    plan,
                    self.kind,
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
