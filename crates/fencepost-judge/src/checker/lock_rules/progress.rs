//! The promise that a free key is granted to somebody who asks for it, within a bound.

use super::*;

/// The longest that a wait may take beyond the time in which a lock can still be held.
const ANSWERS_WITHIN_NS: u64 = 10_000_000_000;

/// Returns the time within which somebody who asks has a key that is certainly free and
/// undisturbed: a server may let go only when it is asked again, and a waiter may sleep
/// for a TTL before it asks.
fn bound_ns(ttl_ns: u64) -> u64 {
    ttl_ns.saturating_mul(2).saturating_add(ANSWERS_WITHIN_NS)
}

pub(super) fn breaks<'a>(case: &Case<'_, 'a>) -> Vec<Break<'a>> {
    let mut asks: BTreeMap<(&str, &str), Vec<&Ask<'a>>> = BTreeMap::new();
    for ask in &case.holds.asks {
        asks.entry((ask.service, ask.key)).or_default().push(ask);
    }
    let mut holds: HashMap<(&str, &str), Vec<usize>> = HashMap::new();
    for (index, hold) in case.holds.all.iter().enumerate() {
        let domain = (hold.service, hold.key);
        holds.entry(domain).or_default().push(index);
    }
    let ends = ends_of_workers(case);
    let mut found = Vec::new();
    for (domain, asks) in asks {
        let Some(ttl_ns) = asks.iter().filter_map(|ask| ask.ttl_ns).max() else {
            continue;
        };
        let own = holds.get(&domain).map_or(&[][..], Vec::as_slice);
        let busy = own.iter().map(|&index| {
            let hold = &case.holds.all[index];
            busy(case, hold, ttl_ns, &ends)
        });
        let bound_ns = bound_ns(ttl_ns);
        let gaps = long_gaps(&merged(busy.collect()), bound_ns);
        for ask in asks {
            if let Some(free_ns) = free_for(case, ask, &gaps, bound_ns) {
                found.push(broken(case, ask, free_ns, own));
            }
        }
    }
    found
}

/// Returns the time from a grant until the key was certainly not held any more, by
/// anybody's account.
fn busy(case: &Case, hold: &Hold, ttl_ns: u64, ends: &HashMap<&str, u64>) -> Span {
    let expires = |from_ns: u64| {
        from_ns
            .saturating_add(ttl_ns)
            .saturating_add(ttl_ns / 100 + 1_000_000)
    };
    let to_ns = match (hold.over_ns, hold.released) {
        (Some(over_ns), Some((_, outcome))) if outcome != ReleaseOutcome::Unknown => over_ns,
        // Its session may go on with its worker, whatever became of the release.
        (Some(over_ns), _) => {
            let worker_ends_ns = match hold.service_plan.renews_silently {
                true => ends.get(hold.worker).copied().unwrap_or(u64::MAX),
                false => over_ns,
            };
            expires(over_ns.max(worker_ends_ns))
        }
        (None, _) => {
            let killed_ns = case.episodes.killed_ns(hold.worker);
            killed_ns.map_or(u64::MAX, expires)
        }
    };
    let released_ns = hold.released.map_or(0, |(at_ns, _)| at_ns);
    (hold.asked_ns.max(hold.from_ns), to_ns.max(released_ns))
}

/// Returns when each worker was killed, or made its last report.
fn ends_of_workers<'a>(case: &Case<'_, 'a>) -> HashMap<&'a str, u64> {
    let mut ends: HashMap<&str, u64> = HashMap::new();
    for event in &case.record.history {
        let end_ns = ends.entry(&event.worker).or_default();
        *end_ns = event.at_ns.max(*end_ns);
    }
    for (worker, end_ns) in &mut ends {
        *end_ns = case.episodes.killed_ns(worker).unwrap_or(*end_ns);
    }
    ends
}

/// Returns the gaps between busy times that are long enough.
fn long_gaps(busy: &[Span], bound_ns: u64) -> Vec<Span> {
    let ends = busy.iter().map(|&(_, to)| to);
    let begins = busy.iter().map(|&(from, _)| from).chain([u64::MAX]);
    let gaps = std::iter::once(0).chain(ends).zip(begins);
    gaps.filter(|&(from, to)| to.saturating_sub(from) >= bound_ns)
        .collect()
}

/// Returns since when a key was free for somebody who asked for it, if it was so for
/// longer than the bound.
fn free_for(case: &Case, ask: &Ask, gaps: &[Span], bound_ns: u64) -> Option<u64> {
    if ask.to_ns.saturating_sub(ask.from_ns) < bound_ns {
        return None;
    }
    // Cut the gaps to the time of the asking.
    let first = gaps.partition_point(|&(_, to)| to < ask.from_ns);
    let gaps = gaps[first..]
        .iter()
        .take_while(|&&(from, _)| from <= ask.to_ns);
    let gaps = gaps.map(|&(from, to)| (from.max(ask.from_ns), to.min(ask.to_ns)));
    let long = |&(from, to): &Span| to.saturating_sub(from) >= bound_ns;
    let disturbed = case.disturbances.of_worker(ask.worker);
    gaps.filter(long)
        .find_map(|(from, to)| quiet_part(disturbed, from, to, bound_ns))
}

/// Returns the beginning of the first part that is undisturbed and long enough.
fn quiet_part(disturbed: [&[Span]; 2], from_ns: u64, to_ns: u64, bound_ns: u64) -> Option<u64> {
    let mut from_ns = from_ns;
    loop {
        let until_ns = from_ns.saturating_add(bound_ns);
        if until_ns > to_ns {
            return None;
        }
        let mut touching = disturbed.iter();
        match touching.find_map(|spans| first_touching(spans, from_ns, until_ns)) {
            Some((_, over_ns)) => from_ns = over_ns.checked_add(1)?,
            None => return Some(from_ns),
        }
    }
}

fn broken<'a>(case: &Case<'_, 'a>, ask: &Ask<'a>, free_ns: u64, own: &[usize]) -> Break<'a> {
    let waited = (ask.to_ns - free_ns) as f64 / 1e9;
    let words = match ask.end {
        AskEnd::Granted => format!("was granted it {waited:.1} s later"),
        AskEnd::Failed => format!("failed after {waited:.1} s"),
        AskEnd::GivenUp | AskEnd::StillAsking => {
            format!("had not been granted it {waited:.1} s later")
        }
    };
    let begun = own.partition_point(|&index| case.holds.all[index].from_ns <= free_ns);
    let before = begun.checked_sub(1).map(|last| own[last]);
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
