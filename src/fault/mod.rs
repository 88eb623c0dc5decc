//! The nemesis: injects a fault, proves that it has bitten, undoes it.
//!
//! A fault that was asked for is not a fault that happened. Each is recorded
//! as requested and as observed, and only what was observed counts. What each
//! kind does, how it is seen and how it is undone stands in `harm/`.

mod attendants;
mod book;
mod clockmaker;
mod field;
mod harm;
pub mod journal;
mod links;
mod names;
mod needs;
mod not_proven;
mod packet_filter;
pub mod probe;
mod readback;
mod witness;

#[cfg(test)]
mod tests;

pub use field::{ClockReading, Field, Server, WorkerClocks};
pub use links::{Links, Reach, proxies};
pub use names::proxy_of;
pub use needs::needs;
pub use not_proven::NotProven;

use crate::model::{Fault, FaultKind, FaultRow, Name};
use book::{Book, Standing};
use journal::Journal;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::broadcast;
use tokio::time::Instant;

/// Takes the rows of `faults.jsonl` as they come.
pub type FaultRecorder = Box<dyn Fn(FaultRow) + Send + Sync>;

type Turn = tokio::sync::Mutex<()>;

/// For listeners that are slow.
const RECONNECTIONS_KEPT: usize = 64;
/// What is not clearly longer is not longer.
const CLEARLY_LONGER: Duration = Duration::from_millis(10);

/// Something that happened to a node, for triggers: `a.paused`.
pub type NodeEvent = (String, &'static str);

/// A fault that has bitten.
#[derive(Debug)]
pub struct Injected {
    /// By which it is undone.
    pub id: u32,
    pub events: Vec<NodeEvent>,
}

pub struct Nemesis {
    pub field: Arc<Field>,
    book: Book,
    journal: Journal,
    /// One action at a time on each target.
    turns: Mutex<BTreeMap<String, Arc<Turn>>>,
    reconnected: broadcast::Sender<Name>,
    /// Test builds can ask for faults that do not bite, to see that this is noticed.
    #[cfg(debug_assertions)]
    only_pretends: bool,
}

impl Nemesis {
    pub fn new(field: Arc<Field>, journal: Journal, record: FaultRecorder) -> Nemesis {
        Nemesis {
            field,
            book: Book::new(record),
            journal,
            turns: Mutex::default(),
            reconnected: broadcast::Sender::new(RECONNECTIONS_KEPT),
            #[cfg(debug_assertions)]
            only_pretends: false,
        }
    }

    /// The defect by name: faults are asked for, and nothing is done.
    #[cfg(debug_assertions)]
    pub const MUTANT: &str = "nemesis-only-pretends";

    #[cfg(debug_assertions)]
    pub fn pretending(mut self) -> Nemesis {
        self.only_pretends = true;
        self
    }

    /// Whether these faults can be done and proven here at all; gets ready what
    /// their proofs need, so that a fault is not held up by it.
    pub async fn prepare(&self, faults: &[&Fault]) -> Result<(), String> {
        for (index, fault) in faults.iter().enumerate() {
            // A step that is repeated is prepared once.
            if faults[..index].contains(fault) {
                continue;
            }
            let prepared = harm::prepare(fault, &self.field).await;
            prepared.map_err(|reason| named(fault.kind(), &fault.target(), &reason))?;
        }
        Ok(())
    }

    /// Injects a fault and proves that it has bitten. `of` is the timeline entry
    /// that asked for it. The error says why it is not proven.
    pub async fn inject(
        &self,
        asked: &Fault,
        lasting: Option<Duration>,
        of: Option<&str>,
    ) -> Result<Injected, NotProven> {
        let fault = self.field.with_leader_named(asked).await?;
        let turn = self.turn(&fault.target());
        let _turn = turn.lock().await;
        let ends_process = harm::ends_process(&fault, &self.field);
        let request = self.book.request(asked, &fault, lasting, ends_process);
        let standing = Standing::new(request, &fault, of);
        let proof = self.bring_about(&standing).await;
        self.book.conclude(&standing.request, proof)?;
        let id = standing.request.id;
        // From after its row was written: that is what the judge measures from.
        self.book.begins(id, Instant::now());
        self.settle_accounts(&standing, &fault);
        let events = standing.events(fault.kind().node_event());
        Ok(Injected { id, events })
    }

    async fn bring_about(&self, standing: &Standing) -> Result<String, String> {
        {
            let mut harm = standing.harm.lock().await;
            harm.look(&self.field).await?;
            // Noted before anything is done: a request that gave no answer may have bitten.
            self.journal.owe(standing.request.id, &harm.debts())?;
        }
        self.book.insert(standing.clone())?;
        if !self.pretends() {
            self.inflict(standing).await?;
        }
        standing.harm.lock().await.bitten(&self.field).await
    }

    /// To its end, also if nobody waits for it any more: what is half done
    /// could not be undone. Whoever undoes it waits for the harm to be free.
    async fn inflict(&self, standing: &Standing) -> Result<(), String> {
        let (field, harm) = (Arc::clone(&self.field), Arc::clone(&standing.harm));
        let mut harm = harm.lock_owned().await;
        let inflicted = tokio::spawn(async move { harm.inflict(&field).await });
        inflicted
            .await
            .unwrap_or_else(|error| Err(error.to_string()))
    }

    /// What stands after a proven fault, and what does not any more.
    fn settle_accounts(&self, standing: &Standing, fault: &Fault) {
        let (id, kind) = (standing.request.id, fault.kind());
        let ends = [FaultKind::Kill, FaultKind::Restart, FaultKind::RestartEmpty];
        let Some(node) = fault.node().filter(|_| ends.contains(&kind)) else {
            if !kind.stands() {
                self.book.remove(id);
            }
            return;
        };
        for gone in self.book.ended_with(node) {
            let seen = "its process ended".to_owned();
            // An end that was seen is no error.
            let _ = self.book.end(&gone.request, Ok(seen));
            self.forget(&gone);
        }
        let is_worker = !self.field.services.contains_key(node);
        // A worker that died stays dead, and what is alive again is not killed any more.
        if kind != FaultKind::Kill || is_worker {
            self.book.remove(id);
            let killed = self.book.find(FaultKind::Kill, node);
            killed.iter().for_each(|killed| self.forget(killed));
        }
    }

    /// Undoes a fault; returns the events that this brings about. One that does
    /// not stand any more has been undone already.
    pub async fn end(&self, id: u32) -> Result<Vec<NodeEvent>, NotProven> {
        let Some(standing) = self.book.get(id) else {
            return Ok(Vec::new());
        };
        let FaultRow { fault, target, .. } = &standing.request;
        match (fault, &standing.node) {
            (FaultKind::Pause, Some(node)) => {
                self.go_on(FaultKind::Resume, node, Some(id)).await?;
            }
            (FaultKind::Freeze, Some(node)) => {
                self.go_on(FaultKind::Thaw, node, Some(id)).await?;
            }
            _ => {
                let turn = self.turn(target);
                let _turn = turn.lock().await;
                if self.book.get(id).is_none() {
                    return Ok(Vec::new());
                }
                let undone = self.undo(&standing).await;
                self.book.end(&standing.request, undone)?;
            }
        }
        Ok(standing.events(fault.end_event()))
    }

    /// SIGCONT. A resume that comes before its pause has been long enough waits
    /// until then: events decide the order, and the length is what it has to be.
    pub async fn resume(&self, node: &Name) -> Result<(), NotProven> {
        let paused = self.book.find(FaultKind::Pause, node);
        let paused = paused.map(|paused| paused.request.id);
        self.go_on(FaultKind::Resume, node, paused).await
    }

    pub async fn thaw(&self, node: &Name) -> Result<(), NotProven> {
        let frozen = self.book.find(FaultKind::Freeze, node);
        let frozen = frozen.map(|frozen| frozen.request.id);
        self.go_on(FaultKind::Thaw, node, frozen).await
    }

    async fn go_on(
        &self,
        kind: FaultKind,
        node: &Name,
        undone: Option<u32>,
    ) -> Result<(), NotProven> {
        let turn = self.turn(node);
        let _turn = turn.lock().await;
        let standing = undone.and_then(|id| self.book.get(id));
        if let Some(standing) = &standing {
            tokio::time::sleep_until(standing.until).await;
        }
        let alias = standing.as_ref().and_then(|it| it.request.alias.clone());
        let request = self.book.request_end(kind, node, alias);
        let proof = match &standing {
            Some(standing) => self.undo(standing).await,
            None => Err(match kind {
                FaultKind::Thaw => "nothing had frozen it".to_owned(),
                _ => "nothing had paused it".to_owned(),
            }),
        };
        self.book.conclude(&request, proof)
    }

    async fn undo(&self, standing: &Standing) -> Result<String, String> {
        let mut harm = standing.harm.lock().await;
        let id = standing.request.id;
        let had_to_stand = self.book.is_proven(id) && !self.has_ended_by_itself(standing).await;
        let stood = match had_to_stand {
            true => harm.stands(&self.field).await,
            false => Ok(()),
        };
        // What ends one that stands still has been requested by itself.
        if !matches!(standing.request.fault, FaultKind::Pause | FaultKind::Freeze) {
            self.book.ending(&standing.request);
        }
        harm.undo(&self.field).await?;
        let seen = harm.undone(&self.field).await?;
        self.forget(standing);
        if let (FaultKind::Disconnect, Some(node)) = (standing.request.fault, &standing.node) {
            // Nobody may be listening.
            let _ = self.reconnected.send(node.clone());
        }
        match stood {
            Ok(()) => Ok(seen),
            Err(reason) => Err(format!("it had not lasted until it was undone: {reason}")),
        }
    }

    /// A worker that is done by now takes along what befell it.
    async fn has_ended_by_itself(&self, standing: &Standing) -> bool {
        match &standing.node {
            Some(node) if standing.request.fault != FaultKind::Kill => {
                let state = self.field.cluster.state(node).await;
                state.is_ok_and(|state| !state.running)
            }
            _ => false,
        }
    }

    fn forget(&self, standing: &Standing) {
        self.book.remove(standing.request.id);
        self.journal.paid(standing.request.id);
    }

    /// The faults of a timeline entry that have not been undone; None where
    /// nothing of it has begun yet.
    pub fn standing_of(&self, entry: &str) -> Option<Vec<u32>> {
        self.book.of(entry)
    }

    /// Whether this node's process has ended, or may have, because of a fault.
    pub fn ends(&self, node: &Name) -> bool {
        self.book.has_ended(node)
    }

    /// Whether what these nodes do not say any more may be due to a fault.
    pub fn disturbs_any(&self, nodes: &[Name]) -> bool {
        nodes.iter().any(|node| self.book.has_befallen(node))
    }

    /// Ends the proxies of nodes that have ended themselves: nothing that was
    /// under way from them arrives any more.
    pub async fn hang_up(&self, nodes: &[Name]) -> Result<(), String> {
        for node in nodes {
            let ended = self.field.cluster.kill(&proxy_of(node)).await;
            ended.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// The nodes that are put on the network again: connections from before are
    /// never told that they lead nowhere.
    pub fn reconnected(&self) -> broadcast::Receiver<Name> {
        self.reconnected.subscribe()
    }

    /// Undoes whatever still stands, the latest first, on every way out; nothing
    /// can be injected any more. What cannot be undone is returned; the removal
    /// of the cluster ends it too.
    pub async fn heal(&self) -> Vec<NotProven> {
        let mut problems = Vec::new();
        for standing in self.book.close_latest_first() {
            let undone = self.undo(&standing).await;
            if let Err(reason) = &undone {
                let FaultRow { fault, target, .. } = &standing.request;
                problems.push(NotProven {
                    fault: Some(standing.request.id),
                    text: format!("{fault} of {target} could not be undone: {reason}"),
                });
            }
            self.book.healed(&standing.request, undone);
        }
        self.field.dismiss_helpers().await;
        if problems.is_empty() {
            self.journal.close();
        }
        problems
    }

    #[cfg(debug_assertions)]
    fn pretends(&self) -> bool {
        self.only_pretends
    }

    #[cfg(not(debug_assertions))]
    fn pretends(&self) -> bool {
        false
    }

    fn turn(&self, target: &str) -> Arc<Turn> {
        Arc::clone(lock(&self.turns).entry(target.to_owned()).or_default())
    }
}

fn named(kind: FaultKind, target: &str, reason: &str) -> String {
    format!("{kind} of {target}: {reason}")
}

/// What these locks guard is whole at any time, also after a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
