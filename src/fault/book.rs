//! What was asked for, what stands, and the rows that say so.

use super::harm::{self, Harm};
use super::{CLEARLY_LONGER, FaultRecorder, NodeEvent, NotProven, lock, named};
use crate::clock::raw_monotonic_ns;
use crate::model::{Fault, FaultKind, FaultRow, FaultStage, Name};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

/// A fault that has not been undone, or is just being brought about.
#[derive(Clone)]
pub struct Standing {
    pub request: FaultRow,
    pub harm: Arc<tokio::sync::Mutex<Box<dyn Harm>>>,
    /// It is not undone before.
    pub until: Instant,
    proven: bool,
    longer_than: Option<Duration>,
    pub node: Option<Name>,
    of: Option<String>,
}

impl Standing {
    pub fn new(request: FaultRow, fault: &Fault, of: Option<&str>) -> Standing {
        let harm = harm::of(fault, request.id);
        Standing {
            request,
            harm: Arc::new(tokio::sync::Mutex::new(harm)),
            until: Instant::now(),
            proven: false,
            longer_than: fault.longer_than(),
            node: fault.node().cloned(),
            of: of.map(str::to_owned),
        }
    }

    /// An event of its node, under every name that a trigger may know it by.
    pub fn events(&self, event: Option<&'static str>) -> Vec<NodeEvent> {
        let node = self.node.iter().map(Name::as_str);
        let names = node.chain(self.request.alias.as_deref());
        let events = names.filter_map(|name| Some((name.to_owned(), event?)));
        events.collect()
    }
}

#[derive(Default)]
struct Pages {
    standing: BTreeMap<u32, Standing>,
    /// The timeline entries of which something has begun.
    begun: BTreeSet<String>,
    /// Healing has begun, and nothing new may come.
    closed: bool,
}

pub struct Book {
    record: FaultRecorder,
    last_id: AtomicU32,
    standing: Mutex<Pages>,
    /// Nodes whose process a fault has ended, at least for a while.
    ended: Mutex<BTreeSet<Name>>,
    /// Nodes that a fault has befallen at any time.
    befallen: Mutex<BTreeSet<Name>>,
}

impl Book {
    pub fn new(record: FaultRecorder) -> Book {
        Book {
            record,
            last_id: AtomicU32::new(0),
            standing: Mutex::default(),
            ended: Mutex::default(),
            befallen: Mutex::default(),
        }
    }

    pub fn request(
        &self,
        asked: &Fault,
        fault: &Fault,
        lasting: Option<Duration>,
        ends_process: bool,
    ) -> FaultRow {
        let kind = fault.kind();
        if let Some(node) = fault.node() {
            lock(&self.befallen).insert(node.clone());
            if ends_process {
                lock(&self.ended).insert(node.clone());
            }
        }
        let ms = |duration: Duration| duration.as_millis() as u64;
        let alias = asked.node().filter(|alias| Some(*alias) != fault.node());
        self.requested(FaultRow {
            alias: alias.map(Name::to_string),
            for_ms: lasting.map(ms),
            longer_than_ms: fault.longer_than().map(ms),
            detail: fault.parameters(),
            clock: fault.clock(),
            by_ms: fault.by_ms(),
            ppm: fault.ppm(),
            ..self.blank(kind, &fault.target())
        })
    }

    /// What ends a fault that makes its target stand still is an action of its own.
    pub fn request_end(&self, kind: FaultKind, node: &Name, alias: Option<String>) -> FaultRow {
        self.requested(FaultRow {
            alias,
            ..self.blank(kind, node)
        })
    }

    fn blank(&self, fault: FaultKind, target: &str) -> FaultRow {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        FaultRow::new(raw_monotonic_ns(), id, fault, target, FaultStage::Requested)
    }

    fn requested(&self, row: FaultRow) -> FaultRow {
        (self.record)(row.clone());
        row
    }

    pub fn conclude(
        &self,
        request: &FaultRow,
        proof: Result<String, String>,
    ) -> Result<(), NotProven> {
        self.tell(request, FaultStage::Observed, proof)
    }

    /// Somebody begins to undo it.
    pub fn ending(&self, request: &FaultRow) {
        // There is nothing to be proven yet.
        let _ = self.tell(request, FaultStage::Ending, Ok(String::new()));
    }

    pub fn end(&self, request: &FaultRow, undone: Result<String, String>) -> Result<(), NotProven> {
        self.tell(request, FaultStage::Ended, undone)
    }

    pub fn healed(&self, request: &FaultRow, undone: Result<String, String>) {
        // The caller has the reason, and says it in its own words.
        let _ = self.tell(request, FaultStage::Healed, undone);
    }

    fn tell(
        &self,
        request: &FaultRow,
        stage: FaultStage,
        came_to: Result<String, String>,
    ) -> Result<(), NotProven> {
        let (stage, detail) = match &came_to {
            Ok(seen) => (stage, seen),
            Err(reason) => (FaultStage::Unproven, reason),
        };
        (self.record)(FaultRow {
            at_ns: raw_monotonic_ns(),
            stage,
            detail: detail.clone(),
            longer_than_ms: None,
            for_ms: None,
            clock: None,
            by_ms: None,
            ppm: None,
            ..request.clone()
        });
        came_to.map(drop).map_err(|reason| NotProven {
            fault: Some(request.id),
            text: named(request.fault, &request.target, &reason),
        })
    }

    pub fn insert(&self, standing: Standing) -> Result<(), String> {
        let mut pages = lock(&self.standing);
        if pages.closed {
            return Err("the case is over".to_owned());
        }
        pages.begun.extend(standing.of.clone());
        pages.standing.insert(standing.request.id, standing);
        Ok(())
    }

    /// It was seen, and its length counts from here.
    pub fn begins(&self, id: u32, from: Instant) {
        if let Some(standing) = lock(&self.standing).standing.get_mut(&id) {
            standing.proven = true;
            if let Some(bound) = standing.longer_than {
                standing.until = from + bound + CLEARLY_LONGER;
            }
        }
    }

    pub fn is_proven(&self, id: u32) -> bool {
        self.get(id).is_some_and(|standing| standing.proven)
    }

    pub fn remove(&self, id: u32) {
        lock(&self.standing).standing.remove(&id);
    }

    pub fn get(&self, id: u32) -> Option<Standing> {
        lock(&self.standing).standing.get(&id).cloned()
    }

    pub fn find(&self, kind: FaultKind, node: &Name) -> Option<Standing> {
        let of_node = self.at(node).into_iter();
        let mut fitting = of_node.filter(|standing| standing.request.fault == kind);
        fitting.next()
    }

    /// What stood at a node, and is gone with its process.
    pub fn ended_with(&self, node: &Name) -> Vec<Standing> {
        let of_node = self.at(node).into_iter();
        of_node
            .filter(|standing| harm::ends_with_process(standing.request.fault))
            .collect()
    }

    fn at(&self, node: &Name) -> Vec<Standing> {
        let pages = lock(&self.standing);
        let standing = pages.standing.values();
        let of_node = standing.filter(|standing| standing.node.as_ref() == Some(node));
        of_node.cloned().collect()
    }

    pub fn of(&self, entry: &str) -> Option<Vec<u32>> {
        let pages = lock(&self.standing);
        let standing = pages.standing.values();
        let fitting = standing.filter(|standing| standing.of.as_deref() == Some(entry));
        let ids = fitting.map(|standing| standing.request.id).collect();
        pages.begun.contains(entry).then_some(ids)
    }

    /// All that stands. Nothing can be added any more.
    pub fn close_latest_first(&self) -> Vec<Standing> {
        let mut pages = lock(&self.standing);
        pages.closed = true;
        pages.standing.values().rev().cloned().collect()
    }

    pub fn has_ended(&self, node: &Name) -> bool {
        lock(&self.ended).contains(node)
    }

    pub fn has_befallen(&self, node: &Name) -> bool {
        lock(&self.befallen).contains(node)
    }
}
