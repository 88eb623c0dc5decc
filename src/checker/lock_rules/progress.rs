//! A free key is granted to whoever asks for it, within a bound.

use super::{Break, Case, excuses, seconds};
use crate::checker::disturbance::{Span, merged, touch};
use crate::checker::episodes;
use crate::checker::holds::{Ask, AskEnd, Hold};
use crate::model::{ReleaseOutcome, ViolationKind};
use std::collections::BTreeMap;

/// What a wait may take beside the time in which a lock can still be held.
const ANSWERS_WITHIN_NS: u64 = 10_000_000_000;

/// So long after a key is certainly free, and nothing disturbs, somebody who asks
/// for it has it: a server may let go only when it is asked again, and a waiter may
/// sleep for a TTL before it asks.
fn bound_ns(ttl_ns: u64) -> u64 {
    ttl_ns.saturating_mul(2).saturating_add(ANSWERS_WITHIN_NS)
}

pub(super) fn breaks<'a>(case: &Case<'_, 'a>) -> Vec<Break<'a>> {
    let mut asks: BTreeMap<(&str, &str), Vec<&Ask<'a>>> = BTreeMap::new();
    for ask in &case.holds.asks {
        asks.entry((ask.service, ask.key)).or_default().push(ask);
    }
    let mut found = Vec::new();
    for ((service, key), asks) in asks {
        let Some(ttl_ns) = asks.iter().filter_map(|ask| ask.ttl_ns).max() else {
            continue;
        };
        let holds = case.holds.all.iter();
        let holds = holds.filter(|hold| hold.service == service && hold.key == key);
        let busy = merged(holds.map(|hold| busy(case, hold, ttl_ns)).collect());
        let bound_ns = bound_ns(ttl_ns);
        for ask in asks {
            if let Some(free_ns) = free_for(case, ask, &busy, bound_ns) {
                found.push(broken(case, ask, free_ns));
            }
        }
    }
    found
}

/// From its grant until it certainly was not held any more, by anybody's account.
fn busy(case: &Case, hold: &Hold, ttl_ns: u64) -> Span {
    let expires = |from_ns: u64| {
        from_ns
            .saturating_add(ttl_ns)
            .saturating_add(ttl_ns / 100 + 1_000_000)
    };
    let to_ns = match (hold.over_ns, hold.released) {
        (Some(over_ns), Some((_, outcome))) if outcome != ReleaseOutcome::Unknown => over_ns,
        // Its session may go on with its worker, whatever became of the release.
        (Some(over_ns), _) => {
            let worker_ends_ns = match excuses::is_etcd(hold.service) {
                true => end_of_worker_ns(case, hold.worker),
                false => over_ns,
            };
            expires(over_ns.max(worker_ends_ns))
        }
        (None, _) => {
            let killed_ns = episodes::killed_ns(case.episodes, hold.worker);
            killed_ns.map_or(u64::MAX, expires)
        }
    };
    let released_ns = hold.released.map_or(0, |(at_ns, _)| at_ns);
    (hold.asked_ns.max(hold.from_ns), to_ns.max(released_ns))
}

fn end_of_worker_ns(case: &Case, worker: &str) -> u64 {
    if let Some(killed_ns) = episodes::killed_ns(case.episodes, worker) {
        return killed_ns;
    }
    let told = case.record.history.iter();
    let told = told.filter(|event| event.worker == worker);
    told.map(|event| event.at_ns).max().unwrap_or(u64::MAX)
}

/// Since when a key was free for somebody who asked for it, where that was so for
/// longer than the bound.
fn free_for(case: &Case, ask: &Ask, busy: &[Span], bound_ns: u64) -> Option<u64> {
    if ask.to_ns.saturating_sub(ask.from_ns) < bound_ns {
        return None;
    }
    // The gaps between what is busy, as far as they fall into the asking.
    let ends = busy.iter().map(|&(_, to)| to);
    let begins = busy.iter().map(|&(from, _)| from).chain([u64::MAX]);
    let gaps = std::iter::once(0).chain(ends).zip(begins);
    let gaps = gaps.map(|(from, to)| (from.max(ask.from_ns), to.min(ask.to_ns)));
    let long = |&(from, to): &Span| to.saturating_sub(from) >= bound_ns;
    let disturbed = case.disturbances.of_worker(ask.worker);
    gaps.filter(long)
        .find_map(|(from, to)| quiet_part(&disturbed, from, to, bound_ns))
}

/// The beginning of the first part that nothing disturbs and that is long enough.
fn quiet_part(disturbed: &[Span], from_ns: u64, to_ns: u64, bound_ns: u64) -> Option<u64> {
    let mut from_ns = from_ns;
    loop {
        let until_ns = from_ns.saturating_add(bound_ns);
        if until_ns > to_ns {
            return None;
        }
        if !touch(disturbed, from_ns, until_ns) {
            return Some(from_ns);
        }
        let next = disturbed.iter().find(|&&(_, to)| to >= from_ns)?;
        from_ns = next.1.checked_add(1)?;
    }
}

fn broken<'a>(case: &Case<'_, 'a>, ask: &Ask<'a>, free_ns: u64) -> Break<'a> {
    let waited = (ask.to_ns - free_ns) as f64 / 1e9;
    let words = match ask.end {
        AskEnd::Granted => format!("was granted it {waited:.1} s later"),
        AskEnd::Failed => format!("failed after {waited:.1} s"),
        AskEnd::GivenUp | AskEnd::StillAsking => {
            format!("had not been granted it {waited:.1} s later")
        }
    };
    let before = case.holds.all.iter().rposition(|hold| {
        hold.service == ask.service && hold.key == ask.key && hold.from_ns <= free_ns
    });
    let before_worker = before.map(|before| case.holds.all[before].worker);
    let workers = [Some(ask.worker), before_worker];
    Break {
        kind: ViolationKind::NeverGranted,
        key: ask.key,
        at_ns: ask.to_ns,
        holds: before.into_iter().collect(),
        workers: workers.into_iter().flatten().collect(),
        detail: format!(
            "{} asked for {}, which was free from {} on, and {words}",
            ask.worker,
            ask.key,
            seconds(case, free_ns)
        ),
        excuse: None,
    }
}
