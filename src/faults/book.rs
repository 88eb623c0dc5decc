//! The book of requested and active faults, which also writes their rows.

use super::catalogue::Injection;
use super::*;
use crate::clock::raw_monotonic_ns;
use crate::model::FaultStage;
use std::sync::atomic::{AtomicU32, Ordering};

/// A fault that has not been undone, or is just being injected.
#[derive(Clone)]
pub struct ActiveFault {
    pub request: FaultRow,
    pub injection: Arc<tokio::sync::Mutex<Box<dyn Injection>>>,
    /// The fault is not undone before this moment.
    pub until: Instant,
    proven: bool,
    longer_than: Option<Duration>,
    pub node: Option<Name>,
    of: Option<String>,
}

impl ActiveFault {
    pub fn new(request: FaultRow, fault: &Fault, of: Option<&str>) -> ActiveFault {
        let injection = catalogue::injection(fault, request.id);
        ActiveFault {
            request,
            injection: Arc::new(tokio::sync::Mutex::new(injection)),
            until: Instant::now(),
            proven: false,
            longer_than: fault.longer_than(),
            node: fault.node().cloned(),
            of: of.map(str::to_owned),
        }
    }

    /// Returns an event of its node, under every name that a trigger may know the node by.
    pub fn events(&self, event: Option<&'static str>) -> Vec<NodeEvent> {
        let node = self.node.iter().map(Name::as_str);
        let names = node.chain(self.request.alias.as_deref());
        let events = names.filter_map(|name| Some((name.to_owned(), event?)));
        events.collect()
    }
}

#[derive(Default)]
struct Pages {
    standing: BTreeMap<u32, ActiveFault>,
    /// The timeline entries that have begun.
    begun: BTreeSet<String>,
    /// Healing has begun, and no new fault may come.
    closed: bool,
}

pub struct Book {
    record: FaultRecorder,
    last_id: AtomicU32,
    standing: Mutex<Pages>,
    /// Nodes whose process a fault has ended, at least for a while.
    ended: Mutex<BTreeSet<Name>>,
    affected: Mutex<BTreeSet<Name>>,
}

impl Book {
    pub fn new(record: FaultRecorder) -> Book {
        Book {
            record,
            last_id: AtomicU32::new(0),
            standing: Mutex::default(),
            ended: Mutex::default(),
            affected: Mutex::default(),
        }
    }

    pub fn request(
        &self,
        asked: &Fault,
        fault: &Fault,
        lasting: Option<Duration>,
        ends_process: bool,
    ) -> FaultRow {
        if let Some(node) = fault.node() {
            self.affected.lock().insert(node.clone());
            if ends_process {
                self.ended.lock().insert(node.clone());
            }
        }
        let alias = asked.node().filter(|alias| Some(*alias) != fault.node());
        self.requested(FaultRow {
            alias: alias.map(Name::to_string),
            ..FaultRow::request(raw_monotonic_ns(), self.next_id(), fault, lasting)
        })
    }

    /// Requests the end of a pause or a freeze, which is an action with rows of its own.
    pub fn request_end(&self, kind: FaultKind, node: &Name, alias: Option<String>) -> FaultRow {
        let (at_ns, id) = (raw_monotonic_ns(), self.next_id());
        self.requested(FaultRow {
            alias,
            ..FaultRow::new(at_ns, id, kind, node, FaultStage::Requested)
        })
    }

    fn next_id(&self) -> u32 {
        self.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn requested(&self, row: FaultRow) -> FaultRow {
        (self.record)(row.clone());
        row
    }

    pub fn conclude(&self, request: &FaultRow, proof: Proof<String>) -> Result<(), NotProven> {
        self.tell(request, FaultStage::Observed, proof)
    }

    pub fn ending(&self, request: &FaultRow) {
        // There is nothing to prove yet.
        let _ = self.tell(request, FaultStage::Ending, Ok(String::new()));
    }

    pub fn end(&self, request: &FaultRow, undone: Proof<String>) -> Result<(), NotProven> {
        self.tell(request, FaultStage::Ended, undone)
    }

    pub fn healed(&self, request: &FaultRow, undone: Proof<String>) {
        // The caller reports the reason in its own words.
        let _ = self.tell(request, FaultStage::Healed, undone);
    }

    fn tell(
        &self,
        request: &FaultRow,
        stage: FaultStage,
        came_to: Proof<String>,
    ) -> Result<(), NotProven> {
        let (stage, detail) = match &came_to {
            Ok(seen) => (stage, seen.clone()),
            Err(reason) => (FaultStage::Unproven, reason.to_string()),
        };
        (self.record)(FaultRow {
            detail,
            reason: came_to.as_ref().err().cloned(),
            ..request.later(raw_monotonic_ns(), stage)
        });
        came_to.map(drop).map_err(|reason| {
            NotProven::new(Some(request.id), request.fault, &request.target, &reason)
        })
    }

    pub fn insert(&self, standing: ActiveFault) -> Proof {
        let mut pages = self.standing.lock();
        if pages.closed {
            return Err(UnprovenReason::CaseOver);
        }
        pages.begun.extend(standing.of.clone());
        pages.standing.insert(standing.request.id, standing);
        Ok(())
    }

    /// Marks a fault as proven; its length counts from here.
    pub fn begins(&self, id: u32, from: Instant) {
        if let Some(standing) = self.standing.lock().standing.get_mut(&id) {
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
        self.standing.lock().standing.remove(&id);
    }

    pub fn get(&self, id: u32) -> Option<ActiveFault> {
        self.standing.lock().standing.get(&id).cloned()
    }

    pub fn find(&self, kind: FaultKind, node: &Name) -> Option<ActiveFault> {
        let of_node = self.at(node).into_iter();
        let mut fitting = of_node.filter(|standing| standing.request.fault == kind);
        fitting.next()
    }

    /// Returns the faults of a node that end with its process.
    pub fn ended_with(&self, node: &Name) -> Vec<ActiveFault> {
        let of_node = self.at(node).into_iter();
        of_node
            .filter(|standing| standing.request.fault.ends_with_process())
            .collect()
    }

    fn at(&self, node: &Name) -> Vec<ActiveFault> {
        let pages = self.standing.lock();
        let standing = pages.standing.values();
        let of_node = standing.filter(|standing| standing.node.as_ref() == Some(node));
        of_node.cloned().collect()
    }

    pub fn of(&self, entry: &str) -> Option<Vec<u32>> {
        let pages = self.standing.lock();
        let standing = pages.standing.values();
        let fitting = standing.filter(|standing| standing.of.as_deref() == Some(entry));
        let ids = fitting.map(|standing| standing.request.id).collect();
        pages.begun.contains(entry).then_some(ids)
    }

    /// Returns all active faults and refuses new ones.
    pub fn close_latest_first(&self) -> Vec<ActiveFault> {
        let mut pages = self.standing.lock();
        pages.closed = true;
        pages.standing.values().rev().cloned().collect()
    }

    pub fn has_ended(&self, node: &Name) -> bool {
        self.ended.lock().contains(node)
    }

    /// Notes that a fault affects these nodes, although it is not done to them.
    pub fn affects(&self, nodes: impl IntoIterator<Item = Name>) {
        self.affected.lock().extend(nodes);
    }

    pub fn has_been_affected(&self, node: &Name) -> bool {
        self.affected.lock().contains(node)
    }
}
