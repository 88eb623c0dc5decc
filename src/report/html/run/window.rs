//! What of a case is drawn: all of it where that can be looked at, and otherwise
//! what surrounds its stories.

use super::CaseEvidence;
use super::fault_span::{FaultSpan, fault_spans};
use crate::model::{
    CaseResult, Event, EventKind, Held, LockEvent, LogRow, Overlap, Row, Story, Violation,
};
use std::collections::{BTreeSet, HashSet};

/// More lanes of workers than this nobody looks at.
const MOST_WORKERS: usize = 12;
/// Nor more of lock nodes.
const MOST_NODES: usize = 12;
/// More faults than this at once nobody tells apart.
const MOST_FAULTS: usize = 40;
/// More pairs of writes than this nobody follows.
const MOST_VIOLATIONS: usize = 200;
/// More broken promises than this nobody points at; the table below has more.
const MOST_BREAKS: usize = 40;
/// What is shown before and after a story, as a part of its length.
const AROUND: u64 = 8;
const LEAST_AROUND_NS: u64 = 50_000_000;

pub struct Window<'a> {
    pub from_ns: u64,
    pub to_ns: u64,
    /// Nothing of the case is left out.
    pub is_whole: bool,
    /// The one key that it is about, where others are left out.
    pub key: Option<&'a str>,
    pub workers: Vec<&'a str>,
    pub nodes: Vec<&'a str>,
    pub resource: &'a str,
    pub events: Vec<&'a Event>,
    pub held: Vec<&'a Held>,
    pub locks: Vec<&'a LockEvent>,
    pub log: Vec<LogRow>,
    pub faults: Vec<FaultSpan<'a>>,
    /// Those that a write committed.
    pub violations: Vec<&'a Violation>,
    /// Those that are about no write, excused or not.
    pub breaks: Vec<&'a Violation>,
    pub stories: Vec<&'a Story>,
    /// Rows of the case that are not drawn.
    pub left_out: usize,
}

/// At most `most` rows in all of them together, about.
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
        let told = stories.iter().map(|story| all.around_story(story, each));
        return told.collect();
    }
    if is_load {
        return Vec::new();
    }
    let overlaps = &case.judgement.overlaps;
    let first = overlaps.iter().find(|overlap| overlap.definite);
    vec![match first {
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
        // A foreign worker's times may be anything.
        let to_ns = to_ns.saturating_add(around_ns);
        self.window(from_ns, to_ns, Some(key), most)
    }

    /// What happened between two moments, to one key or to all.
    fn window(&self, from_ns: u64, to_ns: u64, key: Option<&'a str>, most: usize) -> Window<'a> {
        let record = &self.evidence.record;
        let is_key = |of: &str| key.is_none_or(|key| key == of);
        let is_in = |at_ns: u64| (from_ns..=to_ns).contains(&at_ns);
        let held: Vec<&Held> = self
            .evidence
            .held
            .iter()
            .filter(|held| is_key(&held.key) && held.from_ns <= to_ns && held.to_ns >= from_ns)
            .collect();
        let workers = self.workers(key, &held);
        let is_drawn = |worker: &str| workers.contains(&worker);
        let events = record.history.iter();
        let events = events.filter(|event| {
            is_in(event.at_ns) && is_drawn(&event.worker) && of_key(&event.kind).is_none_or(is_key)
        });
        let nodes = self.nodes();
        let locks = record.locks.iter();
        let log = record.log.rows.iter();
        let known: HashSet<&str> = record.workers.iter().map(String::as_str).collect();
        let faults = fault_spans(&record.faults).into_iter().filter(|span| {
            let is_elsewhere = known.contains(span.target) && !is_drawn(span.target);
            let last_ns = span.last_ns().unwrap_or(u64::MAX);
            !is_elsewhere && span.requested_ns <= to_ns && last_ns >= from_ns
        });
        let drawn = held.into_iter().filter(|held| is_drawn(&held.worker));
        let mut window = Window {
            from_ns,
            to_ns,
            is_whole: false,
            key,
            resource: record.resource.as_deref().unwrap_or("resource"),
            events: events.collect(),
            held: drawn.collect(),
            locks: locks
                .filter(|row| is_in(row.at_ns) && is_key(&row.key))
                .filter(|row| nodes.contains(&row.node.as_str()))
                .collect(),
            log: latest(
                log.filter(|row| is_in(row.at_ns) && is_key(record.log.key_of(row)))
                    .collect(),
                most + 1,
            )
            .into_iter()
            .map(|row| record.log.written(row))
            .collect(),
            faults: faults.collect(),
            violations: Vec::new(),
            breaks: Vec::new(),
            stories: Vec::new(),
            left_out: 0,
            workers,
            nodes,
        };
        window.cut_to(most);
        let shown: HashSet<u64> = window.log.iter().map(|row| row.seq).collect();
        let (from_ns, to_ns) = (window.from_ns, window.to_ns);
        // One that is about no write stands in the lane of who broke the rule.
        let is_in_a_lane = |violation: &Violation| {
            let worker = violation.workers.first().map(String::as_str);
            (from_ns..=to_ns).contains(&violation.at_ns)
                && is_key(&violation.key)
                && worker.is_some_and(|worker| window.workers.contains(&worker))
        };
        let judgement = &self.case.judgement;
        let (of_writes, others): (Vec<_>, Vec<_>) = judgement
            .violations
            .iter()
            .chain(&judgement.excused)
            .partition(|violation| violation.row > 0);
        let violations = of_writes.into_iter();
        let violations = violations
            .filter(|violation| violation.excuse.is_none() && shown.contains(&violation.row));
        let violations = violations.take(MOST_VIOLATIONS).collect();
        let breaks = others.into_iter().filter(|one| is_in_a_lane(one));
        let mut breaks: Vec<&Violation> = breaks.take(MOST_BREAKS).collect();
        breaks.sort_by_key(|one| one.at_ns);
        (window.violations, window.breaks) = (violations, breaks);
        let all =
            record.history.len() + record.locks.len() + record.log.len() + record.faults.len();
        window.left_out = all.saturating_sub(window.rows());
        window
    }

    /// As the scenario has them; of too many, those who held something.
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

impl Window<'_> {
    /// How many rows of the record are drawn.
    pub fn rows(&self) -> usize {
        let faults = self.faults.iter().map(|span| span.rows.len());
        self.events.len() + self.locks.len() + self.log.len() + faults.sum::<usize>()
    }

    /// Where there is too much, first goes what the servers saw of tries that came to
    /// nothing, and then the beginning: what a window leads up to is at its end.
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

/// One more than can be drawn says that some are left out; a log may have millions.
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

/// The key that an event names, where it names one.
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
        | EventKind::Clock { .. } => None,
    }
}
