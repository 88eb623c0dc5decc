//! The promise that nobody is granted a key while another worker's covered time certainly
//! lasts.

use super::*;

pub(super) fn breaks<'a>(case: &Case<'_, 'a>, freed: &[Break<'a>]) -> Vec<Break<'a>> {
    let holds = &case.holds.all;
    let mut freed_by: HashMap<usize, &Break> = HashMap::new();
    for it in freed.iter().filter(|it| it.excuse.is_none()) {
        let Some(&held) = it.holds.first() else {
            continue;
        };
        if it.key == holds[held].key && it.at_ns >= holds[held].asked_ns {
            freed_by.entry(held).or_insert(it);
        }
    }
    let mut found = Vec::new();
    for indexes in by_domain(holds).into_values() {
        let mut longest = Longest::default();
        for &index in &indexes {
            let hold = &holds[index];
            // Report one break for each grant: against the hold whose time would have
            // lasted longest.
            let held = longest.of_others(hold.worker);
            if let Some((covered_to_ns, held)) = held
                && covered_to_ns > hold.from_ns
            {
                let freed = freed_by.get(&held).copied();
                found.push(broken(case, held, index, &indexes, freed));
            }
            longest.add(covered_to_ns(hold), index, hold.worker);
        }
    }
    found
}

/// The two longest covered times so far, of different workers; of equal ones the latest.
#[derive(Default)]
struct Longest<'a> {
    first: Option<(u64, usize, &'a str)>,
    other: Option<(u64, usize, &'a str)>,
}

impl<'a> Longest<'a> {
    fn add(&mut self, covered_to_ns: u64, index: usize, worker: &'a str) {
        let cover = Some((covered_to_ns, index, worker));
        if self.first.is_none_or(|first| first.2 == worker) {
            self.first = self.first.max(cover);
        } else if cover > self.first {
            self.other = std::mem::replace(&mut self.first, cover);
        } else {
            self.other = self.other.max(cover);
        }
    }

    fn of_others(&self, worker: &str) -> Option<(u64, usize)> {
        let covers = [self.first, self.other];
        let mut covers = covers.into_iter().flatten();
        let (to_ns, index, _) = covers.find(|cover| cover.2 != worker)?;
        Some((to_ns, index))
    }
}

fn covered_to_ns(hold: &Hold) -> u64 {
    hold.covered_to_ns.unwrap_or(0)
}

fn broken<'a>(
    case: &Case<'_, 'a>,
    held: usize,
    granted: usize,
    domain: &[usize],
    freed: Option<&Break<'a>>,
) -> Break<'a> {
    let holds = &case.holds.all;
    let (first, second) = (&holds[held], &holds[granted]);
    let until = seconds(case, covered_to_ns(first));
    let at = seconds(case, second.from_ns);
    if is_late_news(case, first, second, domain) {
        let detail = format!(
            "{} was told at {at} that it holds {}, which {} held until {until} at least: its own \
             grant was over by then",
            second.worker, second.key, first.worker
        );
        let what = What(ViolationKind::AcquiredTooLate, second.from_ns, detail);
        return Break {
            holds: vec![granted, held],
            ..Break::by(case, granted, Some(held), what)
        };
    }
    let freed = freed.map(|it| Excuse {
        fault: None,
        text: match it.workers.first() {
            Some(worker) => format!("{worker}'s release, which freed it"),
            None => "a release that freed it".to_owned(),
        },
    });
    let excuse = freed.or_else(|| excuses::lease_cut_short(case, first, second.from_ns));
    let detail = format!(
        "{} was granted {} at {at}, which {} certainly held until {until} at least",
        second.worker, second.key, first.worker
    );
    let what = What(ViolationKind::GrantedWhileHeld, second.from_ns, detail);
    Break::by(case, granted, Some(held), what).excused_by(excuse)
}

/// Returns whether the second grant may have begun and ended before the first, so that
/// its worker only learned of it too late. It did if the server shows that it had ended.
/// It cannot have if its TTL did not fit in before. If neither is known, a worker that
/// was stopped in the meantime is assumed to have learned of it too late.
fn is_late_news(case: &Case, first: &Hold, second: &Hold, domain: &[usize]) -> bool {
    let Some(ttl_ns) = second.ttl_ns else {
        return false;
    };
    let latest_ns = first.from_ns.checked_sub(ttl_ns);
    let Some(latest_ns) = latest_ns.filter(|&latest_ns| latest_ns >= second.asked_ns) else {
        return false;
    };
    if case.servers.saw(second.service, second.key) {
        let over = case.servers.let_go(second);
        // A server that gives a held key to somebody else has not ended the hold.
        let over = over.filter(|(_, end)| *end != StayEnd::Replaced);
        let over_ns = over.map(|(over_ns, _)| over_ns);
        let stays = case.servers.stays(first);
        let granted_ns = stays.iter().map(|stay| stay.from_ns).min();
        return over_ns.is_some_and(|over_ns| {
            over_ns < second.from_ns || granted_ns.is_some_and(|at_ns| over_ns <= at_ns)
        });
    }
    let mut stops = case.episodes.of_target(second.worker);
    let was_stopped = stops.any(|it| {
        it.kind.class() == FaultClass::Stop && it.touches(second.asked_ns, second.from_ns)
    });
    if !was_stopped {
        return false;
    }
    let holds = &case.holds.all;
    let others = domain.iter().map(|&index| &holds[index]);
    let others = others.filter(|other| other.worker != second.worker);
    let covers = others.map(|other| (other.from_ns, covered_to_ns(other)));
    let covers = merged(covers.filter(|(from, to)| from <= to).collect());
    let is_impossible = covers
        .iter()
        .any(|&(from, to)| from <= second.asked_ns && to >= latest_ns);
    !is_impossible
}

/// Counts how often somebody asked for a key while another worker certainly held it: only
/// then does a case say anything about exclusion.
pub(in crate::checker) fn contended(case: &Case) -> u64 {
    let holds = &case.holds.all;
    let domains = by_domain(holds);
    let mut asks: BTreeMap<(&str, &str), Vec<(u64, &str)>> = BTreeMap::new();
    for ask in &case.holds.asks {
        let domain = (ask.service, ask.key);
        asks.entry(domain)
            .or_default()
            .push((ask.from_ns, ask.worker));
    }
    let mut contended = 0;
    for (domain, mut asks) in asks {
        let Some(indexes) = domains.get(&domain) else {
            continue;
        };
        asks.sort_unstable();
        let granted = indexes.iter().map(|&index| (index, &holds[index]));
        let mut granted = granted.peekable();
        let mut longest = Longest::default();
        for (asked_ns, worker) in asks {
            while let Some((index, hold)) = granted.next_if(|(_, hold)| hold.from_ns <= asked_ns) {
                longest.add(covered_to_ns(hold), index, hold.worker);
            }
            let held = longest.of_others(worker);
            contended += u64::from(held.is_some_and(|(to_ns, _)| to_ns > asked_ns));
        }
    }
    contended
}
