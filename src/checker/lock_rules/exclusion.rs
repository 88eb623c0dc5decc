//! Nobody is granted a key while another's covered time certainly lasts.

use super::{Break, Case, by_domain, excuses, seconds};
use crate::checker::disturbance::merged;
use crate::checker::holds::Hold;
use crate::checker::servers::StayEnd;
use crate::model::{Excuse, FaultKind, ViolationKind};
use std::collections::BTreeMap;

pub(super) fn breaks<'a>(case: &Case<'_, 'a>, freed: &[Break<'a>]) -> Vec<Break<'a>> {
    let holds = &case.holds.all;
    let mut found = Vec::new();
    for indexes in by_domain(holds).into_values() {
        // Those whose time may still be covered.
        let mut open: Vec<usize> = Vec::new();
        for &index in &indexes {
            let hold = &holds[index];
            open.retain(|&earlier| covered_to_ns(&holds[earlier]) > hold.from_ns);
            let mut others = open.iter().filter(|&&it| holds[it].worker != hold.worker);
            // One break for each grant: the one whose time would have lasted longest.
            let held = others.clone().max_by_key(|&&it| covered_to_ns(&holds[it]));
            debug_assert!(held.is_some() == others.next().is_some());
            if let Some(&held) = held {
                found.push(broken(case, held, index, &indexes, freed));
            }
            open.push(index);
        }
    }
    found
}

fn covered_to_ns(hold: &Hold) -> u64 {
    hold.covered_to_ns.unwrap_or(0)
}

fn broken<'a>(
    case: &Case<'_, 'a>,
    held: usize,
    granted: usize,
    domain: &[usize],
    freed: &[Break<'a>],
) -> Break<'a> {
    let holds = &case.holds.all;
    let (first, second) = (&holds[held], &holds[granted]);
    let until = seconds(case, covered_to_ns(first));
    let at = seconds(case, second.from_ns);
    if is_late_news(case, first, second, domain) {
        return Break {
            kind: ViolationKind::AcquiredTooLate,
            key: second.key,
            at_ns: second.from_ns,
            holds: vec![granted, held],
            workers: vec![second.worker, first.worker],
            detail: format!(
                "{} was told at {at} that it holds {}, which {} held until {until} at least: its own \
                 grant was over by then",
                second.worker, second.key, first.worker
            ),
            excuse: None,
        };
    }
    let freed = freed.iter().find(|it| {
        it.key == first.key
            && it.holds.first() == Some(&held)
            && it.at_ns >= first.asked_ns
            && it.excuse.is_none()
    });
    let freed = freed.map(|it| Excuse {
        fault: None,
        text: match it.workers.first() {
            Some(worker) => format!("{worker}'s release, which freed it"),
            None => "a release that freed it".to_owned(),
        },
    });
    let excuse = freed
        .or_else(|| excuses::lease_cut_short(case, first.service, first.asked_ns, second.from_ns));
    Break {
        kind: ViolationKind::GrantedWhileHeld,
        key: second.key,
        at_ns: second.from_ns,
        holds: vec![held, granted],
        workers: vec![second.worker, first.worker],
        detail: format!(
            "{} was granted {} at {at}, which {} certainly held until {until} at least",
            second.worker, second.key, first.worker
        ),
        excuse,
    }
}

/// Whether the second grant may have come and gone before the first, and was only
/// told too late. It was so where the server shows that it had ended; it cannot be
/// so where its TTL did not fit in before; and where neither is known, a worker that
/// was stopped meanwhile is believed to have been told too late.
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
        // A server that gives a key to another while it is held has not ended anything.
        let over = over.filter(|(_, end)| *end != StayEnd::Replaced);
        let over_ns = over.map(|(over_ns, _)| over_ns);
        let stays = case.servers.stays(first);
        let granted_ns = stays.iter().map(|stay| stay.from_ns).min();
        return over_ns.is_some_and(|over_ns| {
            over_ns < second.from_ns || granted_ns.is_some_and(|at_ns| over_ns <= at_ns)
        });
    }
    let holds = &case.holds.all;
    let others = domain.iter().map(|&index| &holds[index]);
    let others = others.filter(|other| other.worker != second.worker);
    let covers = others.map(|other| (other.from_ns, covered_to_ns(other)));
    let covers = merged(covers.filter(|(from, to)| from <= to).collect());
    let is_impossible = covers
        .iter()
        .any(|&(from, to)| from <= second.asked_ns && to >= latest_ns);
    let was_stopped = case.episodes.iter().any(|it| {
        it.target == second.worker
            && matches!(it.kind, FaultKind::Pause | FaultKind::Freeze)
            && it.touches(second.asked_ns, second.from_ns)
    });
    !is_impossible && was_stopped
}

/// How often somebody asked for a key while another certainly held it: only then
/// does a case say anything about exclusion.
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
        let mut granted = indexes.iter().map(|&index| &holds[index]).peekable();
        // The two longest covers so far, of different workers.
        let mut longest: [Option<(u64, &str)>; 2] = [None, None];
        for (asked_ns, worker) in asks {
            while let Some(hold) = granted.next_if(|hold| hold.from_ns <= asked_ns) {
                let cover = (covered_to_ns(hold), hold.worker);
                longest = match longest {
                    [first, other] if first.is_some_and(|first| first.1 == cover.1) => {
                        [first.max(Some(cover)), other]
                    }
                    [first, _] if first.is_none_or(|first| first < cover) => [Some(cover), first],
                    [first, other] => [first, other.max(Some(cover))],
                };
            }
            let others = longest.iter().flatten().find(|cover| cover.1 != worker);
            contended += u64::from(others.is_some_and(|cover| cover.0 > asked_ns));
        }
    }
    contended
}
