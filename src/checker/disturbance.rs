//! When a fault may be the reason why something did not happen, or was not seen.

use super::episodes::Episode;
use super::fault_doubts::is_missing;
use crate::model::{CaseRecord, FaultKind};
use std::collections::{HashMap, HashSet};

/// A server that is back, and whoever watches it, needs a moment.
const SETTLES_WITHIN_NS: u64 = 5_000_000_000;

pub(super) struct Disturbances<'a> {
    workers: HashSet<&'a str>,
    /// When anything but single workers was disturbed: the lock servers, or what
    /// could be seen of them.
    of_servers: Vec<Span>,
    /// When single workers were.
    of_workers: HashMap<&'a str, Vec<Span>>,
}

/// From a moment to another, both included.
pub(super) type Span = (u64, u64);

impl<'a> Disturbances<'a> {
    pub fn new(record: &'a CaseRecord, episodes: &[Episode<'a>]) -> Disturbances<'a> {
        let named = record.workers.iter().map(String::as_str);
        let planned = record.plan.workers.keys().map(String::as_str);
        let told = record.history.iter().map(|event| event.worker.as_str());
        let mut planned_faults = record.plan.faults.iter();
        let mut disturbances = Disturbances {
            workers: named.chain(planned).chain(told).collect(),
            of_servers: Vec::new(),
            of_workers: HashMap::new(),
        };
        // Rows are missing, so anything may have been disturbed at any time.
        if planned_faults.any(|planned| is_missing(planned, episodes)) {
            disturbances.of_servers.push((0, u64::MAX));
            return disturbances;
        }
        for episode in episodes {
            let over_ns = episode.over_ns().unwrap_or(u64::MAX);
            let to_ns = over_ns.saturating_add(SETTLES_WITHIN_NS);
            let span = (episode.requested_ns(), to_ns);
            match disturbances.others(episode) {
                None => disturbances.of_servers.push(span),
                Some(workers) => {
                    for worker in workers {
                        let own = disturbances.of_workers.entry(worker);
                        own.or_default().push(span);
                    }
                }
            }
        }
        merge(&mut disturbances.of_servers);
        disturbances.of_workers.values_mut().for_each(merge);
        disturbances
    }

    pub fn of_servers(&self) -> &[Span] {
        &self.of_servers
    }

    /// When a worker was disturbed, and when everybody was.
    pub fn of_worker(&self, worker: &str) -> [&[Span]; 2] {
        let own = self.of_workers.get(worker);
        [own.map_or(&[], Vec::as_slice), &self.of_servers]
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

fn merge(spans: &mut Vec<Span>) {
    *spans = merged(std::mem::take(spans));
}

/// Whether any of these spans, which are merged, touches this one.
pub(super) fn touch(spans: &[Span], from_ns: u64, to_ns: u64) -> bool {
    first_touching(spans, from_ns, to_ns).is_some()
}

/// The first of them that does.
pub(super) fn first_touching(spans: &[Span], from_ns: u64, to_ns: u64) -> Option<Span> {
    let next = spans.partition_point(|&(_, to)| to < from_ns);
    spans.get(next).copied().filter(|&(from, _)| from <= to_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{FaultRow, FaultStage};

    fn row(fault: FaultKind, target: &str, stage: FaultStage, at_ns: u64) -> FaultRow {
        FaultRow::new(at_ns, 1, fault, target, stage)
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
            let is_disturbed = |worker| disturbances.of_worker(worker) != [&[], &[]];
            let servers_are = !disturbances.of_servers().is_empty();
            let found = [servers_are, is_disturbed("a"), is_disturbed("b")];
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
