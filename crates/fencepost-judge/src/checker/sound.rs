//! The parts of a record that can be relied on.
//!
//! A record may have been cut, copied together or written by a program with a mistake in
//! it. Rows that contradict themselves become doubts and are removed from the evidence,
//! so that they neither accuse nor acquit anybody.

use super::*;
use std::borrow::Cow;

/// The rows of a record without repeated ones.
pub(super) struct Sound<'a> {
    pub record: &'a CaseRecord,
    /// In the order of the file, which is in time order for each worker.
    pub history: Vec<&'a Event>,
    /// In the order of the resource's positions.
    pub log: Cow<'a, [Row]>,
    /// Whether the log counts 1, 2, 3 … and is as long as it was when it was collected.
    pub log_is_whole: bool,
    pub locks: Vec<&'a LockEvent>,
    pub faults: Vec<&'a FaultRow>,
    /// Workers whose times or owners contradict themselves: nothing is decided by them.
    pub odd_workers: HashSet<&'a str>,
    /// Owners that are used for more than one hold.
    pub odd_owners: HashSet<&'a str>,
    /// Lock servers whose times contradict themselves.
    pub odd_nodes: HashSet<&'a str>,
    pub doubts: Vec<Doubt>,
}

impl<'a> Sound<'a> {
    pub fn of(record: &'a CaseRecord) -> Sound<'a> {
        let log = log_order::sound(record);
        let mut sound = Sound {
            record,
            history: Vec::with_capacity(record.history.len()),
            log: log.rows,
            log_is_whole: log.is_whole,
            locks: Vec::with_capacity(record.locks.len()),
            faults: Vec::with_capacity(record.faults.len()),
            odd_workers: HashSet::new(),
            odd_owners: HashSet::new(),
            odd_nodes: HashSet::new(),
            doubts: log.doubts,
        };
        sound.take_history();
        sound.take_locks();
        sound.take_faults();
        sound.compare_owners();
        sound
    }

    fn doubt(&mut self, reason: DoubtReason, text: String) {
        self.doubts.push(Doubt::new(reason, text));
    }

    fn take_history(&mut self) {
        let mut by_worker: HashMap<&str, WorkerRows> = HashMap::new();
        for event in &self.record.history {
            let worker = event.worker.as_str();
            let before = by_worker.entry(worker).or_default();
            let last = before.rows.last().copied();
            if let Some(last) = last.filter(|last| event.at_ns <= last.at_ns) {
                if before.has(event) {
                    let (said, at_ns) = (event.kind.name(), event.at_ns);
                    let text =
                        format!("the history has a row twice: {said} of {worker} at {at_ns} ns");
                    self.doubt(DoubtReason::RowTwice, text);
                    continue;
                }
                if event.at_ns < last.at_ns && self.odd_workers.insert(worker) {
                    let text = format!(
                        "the times of worker {worker} run backwards: {} at {} ns comes after {} at {} ns",
                        event.kind.name(),
                        event.at_ns,
                        last.kind.name(),
                        last.at_ns,
                    );
                    self.doubt(DoubtReason::TimesBackwards, text);
                }
            }
            if let Some(last) = last
                && is_after_the_end(last, event)
                && self.odd_workers.insert(worker)
            {
                let said = event.kind.name();
                let text = format!("worker {worker} said {said} after it had said done");
                self.doubt(DoubtReason::Contradiction, text);
            }
            before.add(event);
            self.history.push(event);
        }
    }

    /// Takes the rows of the lock servers. Rows of one key are in the server's order;
    /// those of different keys are written when their owner is known.
    fn take_locks(&mut self) {
        let mut last: HashMap<(&str, &str), &LockEvent> = HashMap::new();
        let mut twice = HashSet::new();
        for row in &self.record.locks {
            let node = row.node.as_str();
            let place = (node, row.key.as_str());
            match last.get(&place) {
                Some(&before) if before == row => {
                    if twice.insert(node) {
                        let text = format!("what {node} held has a row twice, at {} ns", row.at_ns);
                        self.doubt(DoubtReason::RowTwice, text);
                    }
                    continue;
                }
                Some(before) if row.at_ns < before.at_ns && self.odd_nodes.insert(node) => {
                    let text = format!(
                        "the times of what {node} held run backwards: {} ns comes after {} ns",
                        row.at_ns, before.at_ns
                    );
                    self.doubt(DoubtReason::TimesBackwards, text);
                }
                _ => {}
            }
            last.insert(place, row);
            self.locks.push(row);
        }
    }

    fn take_faults(&mut self) {
        let mut by_id: HashMap<u32, OneFault> = HashMap::new();
        let mut known: HashSet<&FaultRow> = HashSet::new();
        for row in &self.record.faults {
            if !known.insert(row) {
                let text = format!(
                    "the faults have a row twice: {} of {} (fault {}), {}",
                    row.fault,
                    row.target,
                    row.id,
                    row.stage.name()
                );
                self.doubt(DoubtReason::RowTwice, text);
                continue;
            }
            let before = by_id.get(&row.id);
            if let Some(why) = before.and_then(|before| before.contradiction(row)) {
                let text = format!(
                    "the rows of {} of {} (fault {}) contradict each other: {why}",
                    row.fault, row.target, row.id
                );
                self.doubt(DoubtReason::Contradiction, text);
            }
            let one = by_id.entry(row.id).or_insert_with(|| OneFault::new(row));
            one.add(row);
            self.faults.push(row);
        }
    }

    /// Checks the owners: an owner is the id of one hold, and a hold has one token.
    fn compare_owners(&mut self) {
        let mut grants: HashMap<&str, (&'a Event, Option<FencingToken>)> = HashMap::new();
        for &event in &self.history {
            let (owner, token) = match &event.kind {
                EventKind::Acquired { owner, token, .. } => {
                    let known = grants.insert(owner, (event, *token));
                    if let Some((first, _)) = known {
                        let text = format!(
                            "owner {owner} is used for two holds, of {} and of {}",
                            first.worker, event.worker
                        );
                        self.doubts
                            .push(Doubt::new(DoubtReason::Contradiction, text));
                        self.odd_workers.insert(&first.worker);
                        self.odd_workers.insert(&event.worker);
                        self.odd_owners.insert(owner);
                    }
                    continue;
                }
                EventKind::Writing { owner, token, .. }
                | EventKind::WriteAccepted { owner, token, .. } => (owner, token),
                _ => continue,
            };
            let granted = grants.get(owner.as_str());
            if let Some(&(grant, granted)) = granted
                && *token != granted
                && token.is_some()
                && granted.is_some()
                && self.odd_workers.insert(&event.worker)
            {
                let text = format!(
                    "{} says {} with another token than the one that {} was granted to owner {owner}",
                    event.worker,
                    event.kind.name(),
                    grant.worker,
                );
                self.doubts
                    .push(Doubt::new(DoubtReason::Contradiction, text));
            }
        }
    }
}

#[derive(Default)]
struct WorkerRows<'a> {
    rows: Vec<&'a Event>,
    /// The same rows for lookup; made only if times do not grow.
    known: Option<HashSet<&'a Event>>,
}

impl<'a> WorkerRows<'a> {
    fn has(&mut self, event: &'a Event) -> bool {
        let rows = &self.rows;
        let known = self
            .known
            .get_or_insert_with(|| rows.iter().copied().collect());
        known.contains(event)
    }

    fn add(&mut self, event: &'a Event) {
        self.rows.push(event);
        if let Some(known) = &mut self.known {
            known.insert(event);
        }
    }
}

fn is_after_the_end(last: &Event, event: &Event) -> bool {
    let is_done = matches!(last.kind, EventKind::Done { .. });
    // A process of the same name may begin anew, and a clock is reported whenever asked
    // for.
    is_done
        && !matches!(
            event.kind,
            EventKind::Ready { .. } | EventKind::Clock { .. }
        )
}

struct OneFault<'a> {
    first: &'a FaultRow,
    stages: HashSet<FaultStage>,
    last_ns: u64,
}

impl<'a> OneFault<'a> {
    fn new(first: &'a FaultRow) -> OneFault<'a> {
        OneFault {
            first,
            stages: HashSet::new(),
            last_ns: 0,
        }
    }

    fn add(&mut self, row: &FaultRow) {
        self.stages.insert(row.stage);
        self.last_ns = self.last_ns.max(row.at_ns);
    }

    fn contradiction(&self, row: &FaultRow) -> Option<String> {
        let first = self.first;
        if (first.fault, &first.target) != (row.fault, &row.target) {
            return Some(format!(
                "they are of {} of {} and of {} of {}",
                first.fault, first.target, row.fault, row.target
            ));
        }
        let has = |stage| self.stages.contains(&stage);
        if has(row.stage) {
            return Some(format!("it was {} twice", row.stage.name()));
        }
        if row.at_ns < self.last_ns {
            return Some(format!(
                "it was {} before what its rows say first",
                row.stage.name()
            ));
        }
        let ends = matches!(row.stage, FaultStage::Ended | FaultStage::Healed);
        (ends && has(FaultStage::Unproven) && !has(FaultStage::Observed))
            .then(|| "it ended and had never begun".to_owned())
    }
}
