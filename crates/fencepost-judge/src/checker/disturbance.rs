//! The times at which a fault may be the reason why something did not happen or was not
//! seen.

use super::*;

/// A server that is back, and its watchers, need this time to settle.
const SETTLES_WITHIN_NS: u64 = 5_000_000_000;

pub(super) struct Disturbances<'a> {
    workers: HashSet<&'a str>,
    /// The times at which anything but single workers was disturbed: the lock servers, or
    /// the view of them.
    of_servers: Vec<Span>,
    /// The times at which single workers were disturbed.
    of_workers: HashMap<&'a str, Vec<Span>>,
}

/// The time from one moment to another, both included.
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
        if planned_faults.any(|planned| fault_doubts::is_missing(planned, episodes)) {
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

    /// Returns when a worker was disturbed, and when everybody was.
    pub fn of_worker(&self, worker: &str) -> [&[Span]; 2] {
        let own = self.of_workers.get(worker);
        [own.map_or(&[], Vec::as_slice), &self.of_servers]
    }

    /// Returns the workers that a fault affects, if it affects nobody else.
    fn others(&self, episode: &Episode<'a>) -> Option<HashSet<&'a str>> {
        let names: HashSet<&str> = match episode.scope {
            None => HashSet::from([episode.target]),
            Some(LinkScope::Around(node)) => HashSet::from([node.as_str()]),
            // Only the links between the two groups are cut, so one group of workers is
            // enough.
            Some(LinkScope::Between(groups)) => {
                let [one, other] = &groups[..] else {
                    return None;
                };
                let of_workers = |group: &&Vec<String>| group.iter().all(|it| self.is_worker(it));
                let workers = [one, other].into_iter().find(of_workers)?;
                workers.iter().map(String::as_str).collect()
            }
            Some(LinkScope::Matching(patterns)) => {
                let from = patterns.iter().map(|pattern| pattern.from.as_deref());
                from.collect::<Option<_>>()?
            }
        };
        let mut all = names.iter();
        all.all(|name| self.is_worker(name)).then_some(names)
    }

    pub fn is_worker(&self, name: &str) -> bool {
        self.workers.contains(name)
    }
}

/// Returns the spans sorted, with those merged that touch.
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

/// Returns whether any of these merged spans touches this one.
pub(super) fn touch(spans: &[Span], from_ns: u64, to_ns: u64) -> bool {
    first_touching(spans, from_ns, to_ns).is_some()
}

pub(super) fn first_touching(spans: &[Span], from_ns: u64, to_ns: u64) -> Option<Span> {
    let next = spans.partition_point(|&(_, to)| to < from_ns);
    spans.get(next).copied().filter(|&(from, _)| from <= to_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(groups: &[&[&str]]) -> Option<LinkScope> {
        let names = |group: &&[&str]| group.iter().map(|&name| name.to_owned()).collect();
        Some(LinkScope::Between(groups.iter().map(names).collect()))
    }

    fn matching(patterns: &[&str]) -> Option<LinkScope> {
        let patterns = patterns.iter().map(|text| LinkPattern::parse(text));
        Some(LinkScope::Matching(patterns.collect::<Option<_>>()?))
    }

    #[test]
    fn a_fault_of_single_workers_disturbs_nobody_else() {
        let record = CaseRecord {
            workers: vec!["a".into(), "b".into()],
            ..CaseRecord::default()
        };
        let (pause, isolate) = (FaultKind::Pause, FaultKind::Isolate);
        let (refuse, split) = (FaultKind::Refuse, FaultKind::Partition);
        let around = |node: &str| Some(LinkScope::Around(node.into()));
        let both = matching(&["a -> redis", "b -> redis"]);
        let a_and_two = between(&[&["a"], &["redis-4", "redis-5"]]);
        let members = between(&[&["etcd-1"], &["etcd-2", "etcd-3"]]);
        let mixed = between(&[&["a", "etcd-1"], &["etcd-2"]]);
        let three = between(&[&["a"], &["b"], &["redis"]]);
        for (kind, target, scope, found) in [
            (pause, "a", None, [false, true, false]),
            (pause, "redis", None, [true, true, true]),
            (isolate, "", around("a"), [false, true, false]),
            (isolate, "", around("redis"), [true, true, true]),
            (refuse, "", matching(&["a -> redis"]), [false, true, false]),
            (refuse, "", matching(&["any -> redis"]), [true, true, true]),
            (refuse, "", both, [false, true, true]),
            (split, "", a_and_two, [false, true, false]),
            (split, "", members, [true, true, true]),
            (split, "", mixed, [true, true, true]),
            (split, "", three, [true, true, true]),
        ] {
            let requested = FaultRow {
                scope,
                ..FaultRow::new(10, 1, kind, target, FaultStage::Requested)
            };
            let observed = requested.later(20, FaultStage::Observed);
            let episodes = super::super::episodes::of(&[&requested, &observed]);
            let disturbances = Disturbances::new(&record, &episodes);
            let is_disturbed = |worker| disturbances.of_worker(worker) != [&[], &[]];
            let servers_are = !disturbances.of_servers().is_empty();
            let disturbed = [servers_are, is_disturbed("a"), is_disturbed("b")];
            assert_eq!(disturbed, found, "{kind} of {:?}", requested.scope);
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
