use super::*;
use std::time::Duration;

/// Returns all durations that can be measured in a case, without those that the case has
/// no data for.
pub(super) fn of(
    sound: &Sound,
    holds: &Holds,
    episodes: &[Episode],
) -> BTreeMap<Measure, Duration> {
    let measured = [
        (Measure::Blocked, blocked(holds).map(|it| it.ns())),
        (Measure::Quiet, quiet_ns(sound)),
        (Measure::Noticed, noticed_ns(holds)),
        (Measure::Recovered, recovered_ns(holds, episodes)),
    ];
    let measured = measured.into_iter();
    measured
        .filter_map(|(measure, ns)| Some((measure, Duration::from_nanos(ns?))))
        .collect()
}

/// A time in which a key was blocked.
#[derive(Clone, Copy)]
pub(super) struct Blocked<'h, 'a> {
    /// The request that waited for it, granted or not.
    pub ask: &'h Ask<'a>,
    pub before: Option<&'h Hold<'a>>,
    pub from_ns: u64,
}

impl Blocked<'_, '_> {
    pub fn ns(&self) -> u64 {
        self.ask.to_ns.saturating_sub(self.from_ns)
    }
}

/// Returns the longest time that a key was blocked: from when somebody began to ask for
/// it, or when the hold before was over if that was later, to the grant, or to the end of
/// the record if there was none. While the hold before is not over, its key is held and
/// not blocked, however long somebody waits for it.
pub(super) fn blocked<'h, 'a>(holds: &'h Holds<'a>) -> Option<Blocked<'h, 'a>> {
    let by_key = granted_by_key(holds);
    // Earlier attempts that failed count from the first.
    let mut wanted: HashMap<(&str, &str), u64> = HashMap::new();
    let mut longest: Option<Blocked> = None;
    for ask in &holds.asks {
        let since_ns = wanted.remove(&(ask.worker, ask.key));
        let since_ns = since_ns.unwrap_or(ask.from_ns);
        let is_open = ask.end == AskEnd::StillAsking;
        if ask.end != AskEnd::Granted && !is_open {
            wanted.insert((ask.worker, ask.key), since_ns);
            continue;
        }
        let granted = by_key
            .get(&(ask.service, ask.key))
            .map_or(&[][..], |all| all);
        let earlier = granted.partition_point(|hold| hold.from_ns < ask.to_ns);
        let before = earlier.checked_sub(1).map(|latest| granted[latest]);
        let free_ns = match before {
            Some(before) => before.over_ns.unwrap_or(ask.to_ns),
            None => 0,
        };
        let blocked = Blocked {
            ask,
            before,
            from_ns: since_ns.max(free_ns),
        };
        if longest.is_none_or(|longest| blocked.ns() > longest.ns()) {
            longest = Some(blocked);
        }
    }
    longest
}

/// Returns the granted holds of each key of each service, in the order of their grants.
fn granted_by_key<'h, 'a>(holds: &'h Holds<'a>) -> HashMap<(&'a str, &'a str), Vec<&'h Hold<'a>>> {
    let mut by_key: HashMap<_, Vec<&Hold>> = HashMap::new();
    for hold in holds.all.iter().filter(|hold| hold.grant.is_some()) {
        let key = (hold.service, hold.key);
        by_key.entry(key).or_default().push(hold);
    }
    by_key
}

/// Returns the longest time without an accepted write, from when somebody first asked for
/// a lock to the last worker's `done`, or to the last event if nobody was ever done.
fn quiet_ns(sound: &Sound) -> Option<u64> {
    let history = &sound.history;
    let asks = |kind: &EventKind| matches!(kind, EventKind::Acquiring { .. });
    let asked = history.iter().filter(|event| asks(&event.kind));
    let start_ns = asked.map(|event| event.at_ns).min()?;
    let is_done = |kind: &EventKind| matches!(kind, EventKind::Done { .. });
    let done = history.iter().filter(|event| is_done(&event.kind));
    let last = history.iter().map(|event| event.at_ns).max();
    let end_ns = done.map(|event| event.at_ns).max().or(last)?;

    let accepted = sound.log.iter();
    let accepted = accepted.filter(|row| row.outcome == RowOutcome::Accepted);
    let within = start_ns..=end_ns;
    let mut moments: Vec<u64> = accepted
        .map(|row| row.at_ns)
        .filter(|at_ns| within.contains(at_ns))
        .chain([start_ns, end_ns])
        .collect();
    moments.sort_unstable();
    moments.windows(2).map(|pair| pair[1] - pair[0]).max()
}

/// Returns the longest time that a worker went on with a hold after it was over by its
/// own account, until it reported the loss or released it. If the worker does not report
/// until when it holds, its last confirmation plus a TTL is the latest end.
fn noticed_ns(holds: &Holds) -> Option<u64> {
    let granted = holds.all.iter().filter(|hold| hold.grant.is_some());
    let noticed = granted.filter_map(|hold| {
        let latest_ns = hold
            .ttl_ns
            .map(|ttl_ns| hold.confirmed_ns.saturating_add(ttl_ns));
        let valid_until_ns = hold.valid_until_ns.or(latest_ns)?;
        let stopped_ns = hold.lost_ns.or(hold.releasing_ns)?;
        let outlived = stopped_ns > valid_until_ns;
        (outlived || hold.lost_ns.is_some()).then(|| stopped_ns.saturating_sub(valid_until_ns))
    });
    noticed.max()
}

/// Returns the longest time from the end of a fault to the next grant of a key that was
/// free and that somebody was waiting for.
fn recovered_ns(holds: &Holds, episodes: &[Episode]) -> Option<u64> {
    let ends = episodes.iter().filter_map(|it| match it.kind.class() {
        FaultClass::Continue => None,
        FaultClass::Restart | FaultClass::Promotion => it.observed_ns(),
        FaultClass::Stop
        | FaultClass::Kill
        | FaultClass::Links
        | FaultClass::Disconnection
        | FaultClass::PacketLoss
        | FaultClass::Clock => it.asked_to_end_ns(),
    });
    let mut ends: Vec<u64> = ends.collect();
    ends.sort_unstable();
    if ends.is_empty() {
        return None;
    }
    let by_key = granted_by_key(holds);
    let mut asks: HashMap<(&str, &str), Vec<&Ask>> = HashMap::new();
    for ask in &holds.asks {
        asks.entry((ask.service, ask.key)).or_default().push(ask);
    }
    let mut longest = None;
    for (key, asks) in asks {
        let granted = by_key.get(&key).map_or(&[][..], |all| all);
        for (from_ns, to_ns) in free_and_wanted(&asks, granted) {
            // The earliest end of a fault in the span is the furthest from the next
            // grant.
            let end = ends.partition_point(|&end_ns| end_ns < from_ns);
            let Some(&end_ns) = ends.get(end).filter(|&&end_ns| end_ns < to_ns) else {
                continue;
            };
            let next = granted.partition_point(|hold| hold.from_ns <= end_ns);
            let granted_ns = granted.get(next).map_or(holds.end_ns, |hold| hold.from_ns);
            longest = longest.max(Some(granted_ns.saturating_sub(end_ns)));
        }
    }
    longest
}

/// Returns the half-open spans in which somebody waited for a key that nobody held. No
/// grant falls into the middle of one.
fn free_and_wanted(asks: &[&Ask], granted: &[&Hold]) -> Vec<(u64, u64)> {
    // The times at which a wait or a hold begins or ends.
    let mut changes: Vec<(u64, i64, i64)> = Vec::new();
    for ask in asks.iter().filter(|ask| ask.from_ns < ask.to_ns) {
        changes.extend([(ask.from_ns, 1, 0), (ask.to_ns, -1, 0)]);
    }
    for hold in granted {
        let over_ns = hold.over_ns.unwrap_or(u64::MAX).max(hold.from_ns);
        changes.extend([(hold.from_ns, 0, 1), (over_ns, 0, -1)]);
    }
    changes.sort_unstable();
    let (mut waiting, mut holding) = (0, 0);
    let mut spans = Vec::new();
    for at in changes.chunk_by(|one, next| one.0 == next.0) {
        let at_ns = at[0].0;
        // The previous span ends here.
        if let Some((_, to_ns)) = spans.last_mut()
            && *to_ns == u64::MAX
        {
            *to_ns = at_ns;
        }
        waiting += at.iter().map(|change| change.1).sum::<i64>();
        holding += at.iter().map(|change| change.2).sum::<i64>();
        if waiting > 0 && holding == 0 {
            spans.push((at_ns, u64::MAX));
        }
    }
    spans
}
