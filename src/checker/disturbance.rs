//! When a fault may be the reason why something did not happen, or was not seen.

use super::episodes::Episode;
use super::fault_doubts::is_missing;
use crate::model::{CaseRecord, FaultKind};
use std::collections::HashSet;

/// A server that is back, and whoever watches it, needs a moment.
const SETTLES_WITHIN_NS: u64 = 5_000_000_000;

pub(super) struct Disturbances<'e, 'a> {
    episodes: &'e [Episode<'a>],
    workers: HashSet<&'a str>,
    /// Rows are missing, so anything may have been disturbed at any time.
    is_unknown: bool,
}

/// From a moment to another, both included.
pub(super) type Span = (u64, u64);

impl<'e, 'a> Disturbances<'e, 'a> {
    pub fn new(record: &'a CaseRecord, episodes: &'e [Episode<'a>]) -> Disturbances<'e, 'a> {
        let named = record.workers.iter().map(String::as_str);
        let planned = record.plan.workers.keys().map(String::as_str);
        let told = record.history.iter().map(|event| event.worker.as_str());
        let mut planned_faults = record.plan.faults.iter();
        Disturbances {
            is_unknown: planned_faults.any(|planned| is_missing(planned, episodes)),
            episodes,
            workers: named.chain(planned).chain(told).collect(),
        }
    }

    /// When anything but single workers was disturbed: the lock servers, or what
    /// could be seen of them.
    pub fn of_servers(&self) -> Vec<Span> {
        let of_servers = |it: &&Episode| self.others(it).is_none();
        self.spans(of_servers)
    }

    /// When a worker was disturbed, or everybody.
    pub fn of_worker(&self, worker: &str) -> Vec<Span> {
        self.spans(|it| {
            self.others(it)
                .is_none_or(|disturbed| disturbed.contains(worker))
        })
    }

    fn spans(&self, counts: impl Fn(&&Episode) -> bool) -> Vec<Span> {
        if self.is_unknown {
            return vec![(0, u64::MAX)];
        }
        let spans = self.episodes.iter().filter(counts).map(|it| {
            let over_ns = it.over_ns().unwrap_or(u64::MAX);
            (it.requested_ns(), over_ns.saturating_add(SETTLES_WITHIN_NS))
        });
        merged(spans.collect())
    }

    /// The workers that a fault befalls, where it befalls nobody else.
    fn others(&self, episode: &Episode<'a>) -> Option<HashSet<&'a str>> {
        let target = episode.target;
        let names: HashSet<&str> = match episode.kind {
            // Between two groups: only the links of the one are cut.
            FaultKind::Partition => {
                let mut groups = target.split(" | ").map(|group| group.split(", "));
                let of_workers = |group: &std::str::Split<'a, &str>| {
                    group.clone().all(|name| self.is_worker(name))
                };
                let (one, other) = (groups.next()?, groups.next()?);
                if groups.next().is_some() {
                    return None;
                }
                [one, other].into_iter().find(of_workers)?.collect()
            }
            FaultKind::Refuse
            | FaultKind::Blackhole
            | FaultKind::OneWay
            | FaultKind::Stall
            | FaultKind::Reset
            | FaultKind::Latency
            | FaultKind::Bandwidth
            | FaultKind::Toxic => {
                let links = target.split(", ").map(|link| link.split_once(" -> "));
                let from = links.map(|link| link.map(|(from, _)| from));
                from.collect::<Option<_>>()?
            }
            _ => HashSet::from([target]),
        };
        names
            .iter()
            .all(|name| self.is_worker(name))
            .then_some(names)
    }

    pub fn is_worker(&self, name: &str) -> bool {
        self.workers.contains(name)
    }
}

/// In their order, with no two that touch.
pub(super) fn merged(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable();
    let mut all: Vec<Span> = Vec::new();
    for (from, to) in spans {
        match all.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => all.push((from, to)),
        }
    }
    all
}

/// Whether any of these spans, which are merged, touches this one.
pub(super) fn touch(spans: &[Span], from_ns: u64, to_ns: u64) -> bool {
    let next = spans.partition_point(|&(_, to)| to < from_ns);
    spans.get(next).is_some_and(|&(from, _)| from <= to_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{FaultRow, FaultStage};

    fn row(fault: FaultKind, target: &str, stage: FaultStage, at_ns: u64) -> FaultRow {
        FaultRow {
            at_ns,
            id: 1,
            fault,
            target: target.to_owned(),
            alias: None,
            stage,
            detail: String::new(),
            longer_than_ms: None,
            for_ms: None,
            clock: None,
            by_ms: None,
            ppm: None,
        }
    }

    #[test]
    fn a_fault_of_single_workers_disturbs_nobody_else() {
        let record = CaseRecord {
            workers: vec!["a".into(), "b".into()],
            ..CaseRecord::default()
        };
        for (kind, target, servers, a, b) in [
            (FaultKind::Pause, "a", false, true, false),
            (FaultKind::Pause, "redis", true, true, true),
            (FaultKind::Refuse, "a -> redis", false, true, false),
            (FaultKind::Refuse, "any -> redis", true, true, true),
            (
                FaultKind::Refuse,
                "a -> redis, b -> redis",
                false,
                true,
                true,
            ),
            (
                FaultKind::Partition,
                "a | redis-4, redis-5",
                false,
                true,
                false,
            ),
            (
                FaultKind::Partition,
                "etcd-1 | etcd-2, etcd-3",
                true,
                true,
                true,
            ),
            (FaultKind::Partition, "a, etcd-1 | etcd-2", true, true, true),
        ] {
            let rows = [
                row(kind, target, FaultStage::Requested, 10),
                row(kind, target, FaultStage::Observed, 20),
            ];
            let rows: Vec<&FaultRow> = rows.iter().collect();
            let episodes = super::super::episodes::of(&rows);
            let disturbances = Disturbances::new(&record, &episodes);
            let found = [
                disturbances.of_servers(),
                disturbances.of_worker("a"),
                disturbances.of_worker("b"),
            ];
            let found = found.map(|spans| !spans.is_empty());
            assert_eq!(found, [servers, a, b], "{kind} of {target}");
        }
    }

    #[test]
    fn spans_that_touch_are_one() {
        let spans = merged(vec![(5, 7), (1, 2), (7, 9)]);
        assert_eq!(spans, [(1, 2), (5, 9)]);
        assert!(touch(&spans, 2, 3) && touch(&spans, 9, 12));
        assert!(!touch(&spans, 3, 4) && !touch(&spans, 10, 12));
    }
}
