//! The nemesis: injects a fault, proves that it has bitten, undoes it.
//!
//! A fault that was requested is not a fault that happened. Each is recorded as requested and
//! as observed, and only the observation counts. `catalogue/` says what each kind does, how it
//! is verified and how it is undone.

mod attendants;
mod book;
mod catalogue;
mod clockmaker;
mod dial;
mod field;
mod guest_debt;
pub mod journal;
mod links;
mod needs;
mod not_proven;
mod packet_filter;
pub mod probe;
mod witness;

#[cfg(test)]
mod tests;

pub use catalogue::{Candidate, Effect, Form, Key, Role, form, plan_words};
pub use field::{ClockReading, Field, Server, WorkerClocks};
pub use guest_debt::GuestDebt;
pub use links::{Links, Reach, proxies, proxy_of};
pub use needs::{needs, of_the_machine};
pub use not_proven::{NotProven, ensure};

use crate::cluster::{Cluster, ClusterError, ClusterResult, Console, Helper, Shared};
pub use crate::model::Proof;
use crate::model::{Fault, FaultKind, FaultRow, Name, UnprovenReason};
use book::{ActiveFault, Book};
use journal::Journal;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast;
use tokio::time::Instant;

/// Receives the rows of `faults.jsonl` as they come.
pub type FaultRecorder = Box<dyn Fn(FaultRow) + Send + Sync>;

type Turn = tokio::sync::Mutex<()>;

/// The number of reconnected nodes that are kept for slow listeners.
const RECONNECTIONS_KEPT: usize = 64;
/// A pause has to exceed its bound by at least this.
const CLEARLY_LONGER: Duration = Duration::from_millis(10);

/// Something that happened to a node, for triggers: `a.paused`.
pub type NodeEvent = (String, &'static str);

/// A fault that has bitten.
#[derive(Debug)]
pub struct Injected {
    /// The id by which the fault is undone.
    pub id: u32,
    pub events: Vec<NodeEvent>,
}

pub struct Nemesis {
    pub field: Arc<Field>,
    book: Book,
    journal: Journal,
    /// Allow one action at a time on each target.
    turns: Mutex<BTreeMap<String, Arc<Turn>>>,
    reconnected: broadcast::Sender<Name>,
    /// Test builds can ask for faults that do not bite, to see that this is noticed.
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
            only_pretends: false,
        }
    }

    /// The name of the mutant which requests faults and injects nothing.
    #[cfg(debug_assertions)]
    pub const MUTANT: &str = "nemesis-only-pretends";

    #[cfg(debug_assertions)]
    pub fn pretending(mut self) -> Nemesis {
        self.only_pretends = true;
        self
    }

    /// Checks that these faults can be injected and proven here at all, and gets ready what their
    /// proofs need, so that this does not delay a fault later.
    pub async fn prepare(&self, faults: &[&Fault]) -> Result<(), NotProven> {
        for (index, fault) in faults.iter().enumerate() {
            // A step that is repeated is prepared once.
            if faults[..index].contains(fault) {
                continue;
            }
            let prepared = async {
                let fault = self.field.with_leader_named(fault).await?;
                catalogue::injection(&fault, 0).prepare(&self.field).await
            };
            let prepared: Proof = prepared.await;
            prepared.map_err(|why| NotProven::new(None, fault.kind(), &fault.target(), &why))?;
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
        let restarts = catalogue::injection(&fault, 0).restarts(&self.field);
        let ends_process = restarts || fault.kind().ends_process();
        let request = self.book.request(asked, &fault, lasting, ends_process);
        self.book.affects(self.field.parted_services(&fault));
        let standing = ActiveFault::new(request, &fault, of);
        let proof = self.bring_about(&standing).await;
        self.book.conclude(&standing.request, proof)?;
        let id = standing.request.id;
        // Counts from after its row was written, because the judge measures from there.
        self.book.begins(id, Instant::now());
        self.settle_accounts(&standing, &fault);
        let events = standing.events(fault.kind().node_event());
        Ok(Injected { id, events })
    }

    async fn bring_about(&self, standing: &ActiveFault) -> Proof<String> {
        {
            let mut injection = standing.injection.lock().await;
            injection.look_before(&self.field).await?;
            // Noted before anything is done: a request without an answer may have bitten.
            self.journal.owe(standing.request.id, &injection.debts())?;
        }
        self.book.insert(standing.clone())?;
        if !(cfg!(debug_assertions) && self.only_pretends) {
            self.begin(standing).await?;
        }
        standing.injection.lock().await.verify(&self.field).await
    }

    /// Injects the fault to the end, even if nobody waits for it any more: a fault that is half
    /// injected could not be undone. An undo waits until the injection is free.
    async fn begin(&self, standing: &ActiveFault) -> Proof {
        let (field, injection) = (Arc::clone(&self.field), Arc::clone(&standing.injection));
        let mut injection = injection.lock_owned().await;
        let injected = tokio::spawn(async move { injection.inject(&field).await });
        injected.await.unwrap_or_else(|error| {
            Err(UnprovenReason::Harness {
                error: error.to_string(),
            })
        })
    }

    /// Updates the book after a fault was proven.
    fn settle_accounts(&self, standing: &ActiveFault, fault: &Fault) {
        let (id, kind) = (standing.request.id, fault.kind());
        let Some(node) = fault.node().filter(|_| kind.ends_process()) else {
            if !kind.lasts() {
                self.book.remove(id);
            }
            return;
        };
        for gone in self.book.ended_with(node) {
            let seen = "its process ended".to_owned();
            // An end that was seen is not an error.
            let _ = self.book.end(&gone.request, Ok(seen));
            self.forget(&gone);
        }
        let is_worker = !self.field.services.contains_key(node);
        // A killed worker stays dead. Any other fault that ends the process starts it again, so
        // an earlier kill of the node is over.
        if kind != FaultKind::Kill || is_worker {
            self.book.remove(id);
            let killed = self.book.find(FaultKind::Kill, node);
            killed.iter().for_each(|killed| self.forget(killed));
        }
    }

    /// Undoes a fault; returns the events that this brings about. A fault that is not active any
    /// more has been undone already.
    pub async fn end(&self, id: u32) -> Result<Vec<NodeEvent>, NotProven> {
        let Some(standing) = self.book.get(id) else {
            return Ok(Vec::new());
        };
        let FaultRow { fault, target, .. } = &standing.request;
        match (fault.continued_by(), &standing.node) {
            (Some(by), Some(node)) => self.go_on(by, node, Some(id)).await?,
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

    /// Lets a stopped node go on, by a resume or a thaw. If the stop has not been long enough yet,
    /// this waits until it has: events decide the order, and the stop has its full length.
    pub async fn continue_by(&self, kind: FaultKind, node: &Name) -> Result<(), NotProven> {
        let stop = kind.continues();
        let stopped = stop.and_then(|stop| self.book.find(stop, node));
        let stopped = stopped.map(|stopped| stopped.request.id);
        self.go_on(kind, node, stopped).await
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
            None => {
                let stopped = kind.continues().and_then(FaultKind::node_event);
                let how = stopped.unwrap_or("stopped").to_owned();
                Err(UnprovenReason::NothingStopped { how })
            }
        };
        self.book.conclude(&request, proof)
    }

    async fn undo(&self, standing: &ActiveFault) -> Proof<String> {
        let mut injection = standing.injection.lock().await;
        let id = standing.request.id;
        let had_to_stand = self.book.is_proven(id) && !self.has_ended_by_itself(standing).await;
        let stood = if had_to_stand {
            injection.verify_active(&self.field).await
        } else {
            Ok(())
        };
        // The end of a pause or a freeze has a request row of its own.
        if standing.request.fault.continued_by().is_none() {
            self.book.ending(&standing.request);
        }
        injection.undo(&self.field).await?;
        let seen = injection.verify_undone(&self.field).await?;
        self.forget(standing);
        if let (FaultKind::Disconnect, Some(node)) = (standing.request.fault, &standing.node) {
            // There may be no listener.
            let _ = self.reconnected.send(node.clone());
        }
        stood.map_err(|why| UnprovenReason::DidNotLast { why: Box::new(why) })?;
        Ok(seen)
    }

    /// Returns whether the process ended by itself, and the fault with it.
    async fn has_ended_by_itself(&self, standing: &ActiveFault) -> bool {
        match &standing.node {
            Some(node) if standing.request.fault != FaultKind::Kill => {
                let state = self.field.cluster.state(node).await;
                state.is_ok_and(|state| !state.running)
            }
            _ => false,
        }
    }

    fn forget(&self, standing: &ActiveFault) {
        self.book.remove(standing.request.id);
        self.journal.paid(standing.request.id);
    }

    /// Returns the faults of a timeline entry that have not been undone; None if nothing of the
    /// entry has begun yet.
    pub fn standing_of(&self, entry: &str) -> Option<Vec<u32>> {
        self.book.of(entry)
    }

    /// Returns whether this node's process has ended, or may have, because of a fault.
    pub fn ends(&self, node: &Name) -> bool {
        self.book.has_ended(node)
    }

    /// Returns whether a fault may be the reason that these nodes report nothing any more.
    pub fn disturbs_any(&self, nodes: &[Name]) -> bool {
        nodes.iter().any(|node| self.book.has_been_affected(node))
    }

    /// Kills the proxies of nodes that have ended, so that nothing which was under way from those
    /// nodes arrives any more.
    pub async fn hang_up(&self, nodes: &[Name]) -> ClusterResult {
        for node in nodes {
            self.field.cluster.kill(&proxy_of(node)).await?;
        }
        Ok(())
    }

    /// Reports the nodes that are put on the network again: their old connections do not learn
    /// that they lead nowhere.
    pub fn reconnected(&self) -> broadcast::Receiver<Name> {
        self.reconnected.subscribe()
    }

    /// Undoes every fault that is still active, the latest first, on every way out; nothing can be
    /// injected any more. Returns the faults that could not be undone; the removal of the cluster
    /// ends those too.
    pub async fn heal(&self) -> Vec<NotProven> {
        let mut problems = Vec::new();
        for standing in self.book.close_latest_first() {
            let undone = self.undo(&standing).await;
            if let Err(reason) = &undone {
                let FaultRow { fault, target, .. } = &standing.request;
                problems.push(NotProven {
                    fault: Some(standing.request.id),
                    text: format!("{fault} of {target} could not be undone: {reason}"),
                    is_of_nothing: false,
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

    /// Forgets the faults that could not be undone: their nodes have been removed.
    pub fn ended_with_the_nodes(&self) {
        self.journal.close();
    }

    fn turn(&self, target: &str) -> Arc<Turn> {
        Arc::clone(self.turns.lock().entry(target.to_owned()).or_default())
    }
}
