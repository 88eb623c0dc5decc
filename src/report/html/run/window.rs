//! The part of a case that is drawn: all of it if that is readable, otherwise what surrounds
//! its stories.

use super::*;
use std::collections::{BTreeSet, HashSet};

/// The most lanes of workers; nobody would look at more.
const MOST_WORKERS: usize = 12;
/// The most lanes of lock nodes.
const MOST_NODES: usize = 12;
/// The most faults at once; more could not be told apart.
const MOST_FAULTS: usize = 40;
/// The most pairs of writes; nobody could follow more.
const MOST_VIOLATIONS: usize = 200;
/// The most broken promises that are marked; the table below has more.
const MOST_BREAKS: usize = 40;
/// The part of a story's length that is shown before and after it is 1/AROUND.
const AROUND: u64 = 8;
const LEAST_AROUND_NS: u64 = 50_000_000;

pub struct Window<'a> {
    pub from_ns: u64,
    pub to_ns: u64,
    /// Whether the case is drawn completely.
    pub is_whole: bool,
    /// The only key that is drawn, if others are left out.
    pub key: Option<&'a str>,
    pub workers: Vec<&'a str>,
    pub nodes: Vec<&'a str>,
    pub resource: &'a str,
    pub events: Vec<&'a Event>,
    pub held: Vec<&'a Held>,
    pub locks: Vec<&'a LockEvent>,
    pub log: Vec<LogRow>,
    pub faults: Vec<FaultSpan<'a>>,
    /// The violations that a write committed.
    pub violations: Vec<&'a Violation>,
    /// The violations that are not about a write, excused or not.
    pub breaks: Vec<&'a Violation>,
    pub stories: Vec<&'a Story>,
    /// The number of rows of the case that are not drawn.
    pub left_out: usize,
}

/// Returns the windows of a case, with about `most` rows in all of them together.
pub fn windows<'a>(
    case: &'a CaseResult,
    evidence: &'a CaseEvidence,
    most: usize,
) -> Vec<Window<'a>> {
    let record = &evidence.record;
    let (mut from_ns, mut to_ns) = (u64::MAX, 0);
    let times = record.history.iter().map(|event| event.at_ns);
    let times = times.chain(record.log.rows.iter().map(|row| row.at_ns));
    let times = times.chain(record.locks.iter().map(|row| row.at_ns));
    for at_ns in times.chain(record.faults.iter().map(|row| row.at_ns)) {
        (from_ns, to_ns) = (from_ns.min(at_ns), to_ns.max(at_ns));
    }
    if from_ns > to_ns {
        return Vec::new();
    }
    let all = View { case, evidence };
    let is_load = case.notes.load.is_some();
    let whole = all.window(from_ns, to_ns, None, most);
    if !is_load && whole.left_out == 0 {
        let stories = case.judgement.stories.iter().collect();
        return vec![Window {
            stories,
            is_whole: true,
            ..whole
        }];
    }
    let stories = &case.judgement.stories;
    if !stories.is_empty() {
        let each = most / stories.len();
        return stories
            .iter()
            .map(|story| all.around_story(story, each))
            .collect();
    }
    if is_load {
        return Vec::new();
    }
    let mut overlaps = case.judgement.overlaps.iter();
    vec![match overlaps.find(|overlap| overlap.definite) {
        Some(overlap) => all.around_overlap(overlap, most),
        None => {
            let key = evidence.held.first().map(|held| held.key.as_str());
            all.window(from_ns, to_ns, key, most)
        }
    }]
}

struct View<'a> {
    case: &'a CaseResult,
    evidence: &'a CaseEvidence,
}

impl<'a> View<'a> {
    fn around_story(&self, story: &'a Story, most: usize) -> Window<'a> {
        let times = || story.steps.iter().map(|step| step.at_ns);
        let from_ns = times().min().unwrap_or_default();
        let to_ns = times().max().unwrap_or_default();
        let mut window = self.around(from_ns, to_ns, &story.key, most);
        window.stories = vec![story];
        window
    }

    fn around_overlap(&self, overlap: &'a Overlap, most: usize) -> Window<'a> {
        let mut held = self.evidence.held.iter();
        let first = held.rfind(|held| {
            held.worker == overlap.first
                && held.key == overlap.key
                && held.from_ns <= overlap.from_ns
        });
        let from_ns = first.map_or(overlap.from_ns, |held| held.from_ns);
        self.around(from_ns, overlap.to_ns, &overlap.key, most)
    }

    fn around(&self, from_ns: u64, to_ns: u64, key: &'a str, most: usize) -> Window<'a> {
        let around_ns = (to_ns.saturating_sub(from_ns) / AROUND).max(LEAST_AROUND_NS);
        let from_ns = from_ns.saturating_sub(around_ns);
        // The times of a worker that is not ours may be anything.
        let to_ns = to_ns.saturating_add(around_ns);
        self.window(from_ns, to_ns, Some(key), most)
    }

    /// Returns what happened between two moments, to one key or to all.
    fn window(&self, from_ns: u64, to_ns: u64, key: Option<&'a str>, most: usize) -> Window<'a> {
        let record = &self.evidence.record;
        let is_key = |of: &str| key.is_none_or(|key| key == of);
        let is_in = |at_ns: u64| (from_ns..=to_ns).contains(&at_ns);
        let mut held: Vec<&Held> = self.evidence.held.iter().collect();
        held.retain(|one| is_key(&one.key) && one.from_ns <= to_ns && one.to_ns >= from_ns);
        let (workers, nodes) = (self.workers(key, &held), self.nodes());
        let is_drawn = |worker: &str| workers.contains(&worker);
        held.retain(|one| is_drawn(&one.worker));
        let events = record.history.iter().filter(|event| {
            is_in(event.at_ns) && is_drawn(&event.worker) && of_key(&event.kind).is_none_or(is_key)
        });
        let locks = record.locks.iter().filter(|row| {
            is_in(row.at_ns) && is_key(&row.key) && nodes.contains(&row.node.as_str())
        });
        let log = record.log.rows.iter();
        let log = log.filter(|row| is_in(row.at_ns) && is_key(record.log.key_of(row)));
        let log = latest(log.collect(), most + 1).into_iter();
        let known: HashSet<&str> = record.workers.iter().map(String::as_str).collect();
        let faults = fault_spans(&record.faults).into_iter().filter(|span| {
            let is_elsewhere = known.contains(span.target) && !is_drawn(span.target);
            let last_ns = span.last_ns().unwrap_or(u64::MAX);
            !is_elsewhere && span.requested_ns <= to_ns && last_ns >= from_ns
        });
        let mut window = Window {
            from_ns,
            to_ns,
            is_whole: false,
            key,
            resource: record.resource.as_deref().unwrap_or("resource"),
            events: events.collect(),
            held,
            locks: locks.collect(),
            log: log.map(|row| record.log.written(row)).collect(),
            faults: faults.collect(),
            violations: Vec::new(),
            breaks: Vec::new(),
            stories: Vec::new(),
            left_out: 0,
            workers,
            nodes,
        };
        window.cut_to(most);
        window.add_broken(&self.case.judgement);
        let all =
            record.history.len() + record.locks.len() + record.log.len() + record.faults.len();
        window.left_out = all.saturating_sub(window.rows());
        window
    }

    /// Returns the workers in the order of the scenario; if there are too many, only those that
    /// held something.
    fn workers(&self, key: Option<&str>, held: &[&Held]) -> Vec<&'a str> {
        let record = &self.evidence.record;
        let mut all: Vec<&str> = record.workers.iter().map(String::as_str).collect();
        let mut known: BTreeSet<&str> = all.iter().copied().collect();
        for event in &record.history {
            if known.insert(&event.worker) {
                all.push(&event.worker);
            }
        }
        if key.is_some() || all.len() > MOST_WORKERS {
            let holders: BTreeSet<&str> = held.iter().map(|held| held.worker.as_str()).collect();
            all.retain(|worker| holders.contains(worker));
        }
        all.truncate(MOST_WORKERS);
        all
    }

    fn nodes(&self) -> Vec<&'a str> {
        let record = &self.evidence.record;
        let seen = record.locks.iter().map(|row| row.node.as_str());
        let known = self.case.notes.versions.keys().map(String::as_str);
        let all: BTreeSet<&str> = seen.chain(known).collect();
        all.into_iter().take(MOST_NODES).collect()
    }
}

impl<'a> Window<'a> {
    fn add_broken(&mut self, judgement: &'a Judgement) {
        let shown: HashSet<u64> = self.log.iter().map(|row| row.seq).collect();
        let all = || judgement.violations.iter().chain(&judgement.excused);
        let of_writes = all().filter(|one| one.excuse.is_none() && shown.contains(&one.row));
        self.violations = of_writes.take(MOST_VIOLATIONS).collect();
        // A violation that is not about a write is drawn in the lane of the worker that broke
        // the rule.
        let is_in_a_lane = |one: &&Violation| {
            let worker = one.workers.first().map(String::as_str);
            (self.from_ns..=self.to_ns).contains(&one.at_ns)
                && self.key.is_none_or(|key| key == one.key)
                && worker.is_some_and(|worker| self.workers.contains(&worker))
        };
        let others = all().filter(|one| one.row == 0).filter(is_in_a_lane);
        let mut breaks: Vec<&Violation> = others.take(MOST_BREAKS).collect();
        breaks.sort_by_key(|one| one.at_ns);
        self.breaks = breaks;
    }

    /// Returns how many rows of the record are drawn.
    pub fn rows(&self) -> usize {
        let faults = self.faults.iter().map(|span| span.rows.len());
        self.events.len() + self.locks.len() + self.log.len() + faults.sum::<usize>()
    }

    /// Shortens a window that is too long. It first removes what the servers saw of failed
    /// tries, and then the beginning, because a window leads up to its end.
    fn cut_to(&mut self, most: usize) {
        self.cut_rows_to(most);
        keep_last(&mut self.held, most);
        keep_last(&mut self.faults, MOST_FAULTS);
    }

    fn cut_rows_to(&mut self, most: usize) {
        if self.rows() > most {
            let owners: BTreeSet<&str> = self.held.iter().map(|held| held.owner.as_str()).collect();
            let is_held =
                |row: &&LockEvent| row.owner.as_deref().is_none_or(|o| owners.contains(o));
            self.locks.retain(is_held);
        }
        if self.rows() <= most {
            return;
        }
        let events = self.events.iter().map(|event| event.at_ns);
        let mut times: Vec<u64> = events
            .chain(self.locks.iter().map(|row| row.at_ns))
            .chain(self.log.iter().map(|row| row.at_ns))
            .collect();
        times.sort_unstable();
        let Some(&first_ns) = times.iter().nth_back(most) else {
            return;
        };
        self.from_ns = first_ns;
        self.events.retain(|event| event.at_ns > first_ns);
        self.locks.retain(|row| row.at_ns > first_ns);
        self.log.retain(|row| row.at_ns > first_ns);
        self.held.retain(|held| held.to_ns > first_ns);
        let is_over = |span: &FaultSpan| span.last_ns().is_some_and(|last_ns| last_ns < first_ns);
        self.faults.retain(|span| !is_over(span));
    }
}

/// Returns the latest rows. The caller asks for one more than can be drawn, which shows that
/// some are left out; a log may have millions.
fn latest(mut rows: Vec<&Row>, most: usize) -> Vec<&Row> {
    if rows.len() > most {
        let mut times: Vec<u64> = rows.iter().map(|row| row.at_ns).collect();
        let at = times.len() - most;
        let (_, &mut from_ns, _) = times.select_nth_unstable(at);
        rows.retain(|row| row.at_ns >= from_ns);
        keep_last(&mut rows, most);
    }
    rows
}

fn keep_last<T>(all: &mut Vec<T>, most: usize) {
    all.drain(..all.len().saturating_sub(most));
}

/// Returns the key that an event names, if it names one.
fn of_key(kind: &EventKind) -> Option<&str> {
    match kind {
        EventKind::Acquiring { key, .. }
        | EventKind::Acquired { key, .. }
        | EventKind::Reentered { key, .. }
        | EventKind::Writing { key, .. }
        | EventKind::WriteAccepted { key, .. }
        | EventKind::WriteRejected { key, .. }
        | EventKind::Renewed { key, .. }
        | EventKind::Lost { key, .. }
        | EventKind::Left { key, .. }
        | EventKind::Releasing { key, .. }
        | EventKind::Released { key, .. } => Some(key),
        EventKind::Ready { .. }
        | EventKind::AtGate { .. }
        | EventKind::Failed { .. }
        | EventKind::Done { .. }
        | EventKind::Refused { .. }
        | EventKind::Clock { .. } => None,
    }
}
