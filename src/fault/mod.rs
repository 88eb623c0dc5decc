//! The nemesis: injects a fault, proves that it has bitten, heals it.
//!
//! A fault that was asked for is not a fault that happened. Each is recorded
//! as requested and as observed, and only what was observed counts.

mod process;
#[cfg(test)]
mod tests;

use crate::clock::raw_monotonic_ns;
use crate::cluster::Cluster;
use crate::model::{FaultKind, FaultRow, FaultStage};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::time::Instant;

/// Takes the rows of `faults.jsonl` as they come.
pub type FaultRecorder = Box<dyn Fn(FaultRow) + Send + Sync>;

type Turn = tokio::sync::Mutex<()>;

/// A pause that has not been undone.
#[derive(Clone)]
struct Standing {
    pause: FaultRow,
    /// It is not resumed before.
    until: Instant,
}

/// What is not clearly longer is not longer.
const CLEARLY_LONGER: Duration = Duration::from_millis(10);

pub struct Nemesis {
    cluster: Arc<dyn Cluster>,
    record: FaultRecorder,
    last_id: AtomicU32,
    /// Targets that stand still, or may: what healing has to undo.
    standing: Mutex<BTreeMap<String, Standing>>,
    /// One action at a time on each target.
    turns: Mutex<BTreeMap<String, Arc<Turn>>>,
    /// Test builds can ask for faults that do not bite, to see that this is noticed.
    #[cfg(debug_assertions)]
    sends_no_signal: bool,
}

impl Nemesis {
    pub fn new(cluster: Arc<dyn Cluster>, record: FaultRecorder) -> Nemesis {
        Nemesis {
            cluster,
            record,
            last_id: AtomicU32::new(0),
            standing: Mutex::default(),
            turns: Mutex::default(),
            #[cfg(debug_assertions)]
            sends_no_signal: false,
        }
    }

    /// The defect by name: faults are asked for, and no signal is sent.
    #[cfg(debug_assertions)]
    pub const MUTANT: &str = "nemesis-sends-no-signal";

    #[cfg(debug_assertions)]
    pub fn sending_no_signal(mut self) -> Nemesis {
        self.sends_no_signal = true;
        self
    }

    /// SIGSTOP, proven when every thread of the target was seen in state T.
    /// With `longer_than`, a resume that comes sooner waits until then: events
    /// decide the order, and the length of the pause is still what it has to be.
    /// The error says why it is not proven.
    pub async fn pause(&self, target: &str, longer_than: Option<Duration>) -> Result<(), String> {
        let turn = self.turn(target);
        let _turn = turn.lock().await;
        let pause = self.request(FaultKind::Pause, target, longer_than);
        let stands = |from: Instant| Standing {
            pause: pause.clone(),
            until: longer_than.map_or(from, |bound| from + bound + CLEARLY_LONGER),
        };
        // Noted before the signal is sent: a request that gave no answer may have bitten.
        lock(&self.standing).insert(target.to_owned(), stands(Instant::now()));
        let proof = process::stop(self, target).await;
        lock(&self.standing).insert(target.to_owned(), stands(Instant::now()));
        self.conclude(&pause, proof)
    }

    /// SIGCONT, proven when no thread of the target is in state T any more.
    pub async fn resume(&self, target: &str) -> Result<(), String> {
        let turn = self.turn(target);
        let _turn = turn.lock().await;
        let standing = lock(&self.standing).get(target).cloned();
        if let Some(standing) = &standing {
            tokio::time::sleep_until(standing.until).await;
        }
        let resume = self.request(FaultKind::Resume, target, None);
        let proof = match standing {
            Some(_) => process::resume(self, target).await,
            None => Err("nothing had paused it".to_owned()),
        };
        if proof.is_ok() {
            lock(&self.standing).remove(target);
        }
        self.conclude(&resume, proof)
    }

    /// Undoes whatever still stands, in any state, on every way out. What
    /// cannot be undone is returned; the removal of the cluster ends it too.
    pub async fn heal(&self) -> Vec<String> {
        let all = lock(&self.standing).clone();
        let mut problems = Vec::new();
        for (target, Standing { pause, .. }) in all {
            match process::resume(self, &target).await {
                Ok(seen) => {
                    lock(&self.standing).remove(&target);
                    self.row(&pause, FaultStage::Healed, seen);
                }
                Err(reason) => {
                    problems.push(format!("{target} could not be resumed: {reason}"));
                    self.row(&pause, FaultStage::Unproven, reason);
                }
            }
        }
        problems
    }

    fn turn(&self, target: &str) -> Arc<Turn> {
        Arc::clone(lock(&self.turns).entry(target.to_owned()).or_default())
    }

    fn request(&self, fault: FaultKind, target: &str, longer_than: Option<Duration>) -> FaultRow {
        let row = FaultRow {
            at_ns: raw_monotonic_ns(),
            id: self.last_id.fetch_add(1, Ordering::Relaxed) + 1,
            fault,
            target: target.to_owned(),
            stage: FaultStage::Requested,
            detail: String::new(),
            longer_than_ms: longer_than.map(|bound| bound.as_millis() as u64),
        };
        (self.record)(row.clone());
        row
    }

    fn conclude(&self, fault: &FaultRow, proof: Result<String, String>) -> Result<(), String> {
        match proof {
            Ok(seen) => {
                self.row(fault, FaultStage::Observed, seen);
                Ok(())
            }
            Err(reason) => {
                self.row(fault, FaultStage::Unproven, reason.clone());
                Err(format!("{} of {}: {reason}", fault.fault, fault.target))
            }
        }
    }

    fn row(&self, fault: &FaultRow, stage: FaultStage, detail: String) {
        (self.record)(FaultRow {
            at_ns: raw_monotonic_ns(),
            stage,
            detail,
            longer_than_ms: None,
            ..fault.clone()
        });
    }
}

/// What these locks guard is whole at any time, also after a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
