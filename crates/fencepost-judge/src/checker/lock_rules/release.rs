//! The promise that a release never frees a lock that its owner no longer holds.

use super::*;

pub(super) fn breaks<'a>(case: &Case<'_, 'a>) -> Vec<Break<'a>> {
    let holds = &case.holds.all;
    let domains = domains(case);
    let mut found: Vec<Break> = Vec::new();
    let mut told: HashSet<usize> = HashSet::new();
    for (index, hold) in holds.iter().enumerate() {
        if let Some((released_ns, ReleaseOutcome::FreedAnother)) = hold.released {
            let from_ns = hold.releasing_ns.unwrap_or(hold.to_ns);
            let domain = domains.get(&(hold.service, hold.key));
            let victim = domain.and_then(|own| own.victim(case, index, from_ns, released_ns));
            told.insert(victim.unwrap_or(index));
            let whose = victim.map(|victim| holds[victim].worker);
            let detail = format!(
                "{}'s release of {} freed what {} held",
                hold.worker,
                hold.key,
                whose.unwrap_or("another owner")
            );
            let what = What(ViolationKind::FreedAnother, released_ns, detail);
            found.push(Break::by(case, index, victim, what));
        }
    }
    let told_by_workers = found.len();
    for domain in domains.values() {
        for &(freed_ns, index) in &domain.freed {
            let hold = &holds[index];
            if told.contains(&index) {
                continue;
            }
            let by = domain.releasing_at(case, hold, freed_ns);
            let detail = format!(
                "the lock of {} on {} was released at {}, and not by {}",
                hold.worker,
                hold.key,
                seconds(case, freed_ns),
                hold.worker
            );
            let what = What(ViolationKind::FreedAnother, freed_ns, detail);
            found.push(Break {
                workers: by.into_iter().chain([hold.worker]).collect(),
                ..Break::by(case, index, None, what)
            });
        }
    }
    found[told_by_workers..].sort_by_key(|it| it.holds.clone());
    found
}

/// The holds of one key of one service.
#[derive(Default)]
struct Domain {
    /// The granted holds, in the order of their grants. With each: the earliest request
    /// of it and all later ones, and the latest release of it and all earlier ones.
    granted: Vec<(usize, u64, u64)>,
    /// The holds that a server was seen to release before their own workers did, sorted
    /// by time.
    freed: Vec<(u64, usize)>,
    /// The releases, sorted by when they were sent. With each: when it was answered,
    /// whose hold it was, and when all releases up to this one were answered.
    releases: Vec<(u64, u64, usize, u64)>,
}

fn domains<'a>(case: &Case<'_, 'a>) -> BTreeMap<(&'a str, &'a str), Domain> {
    let mut domains: BTreeMap<_, Domain> = BTreeMap::new();
    for (index, hold) in case.holds.all.iter().enumerate() {
        let domain = domains.entry((hold.service, hold.key)).or_default();
        if hold.grant.is_some() {
            let released_ns = hold.releasing_ns.unwrap_or(u64::MAX);
            let before_ns = domain.granted.last().map_or(0, |before| before.2);
            let granted = (index, hold.asked_ns, released_ns.max(before_ns));
            domain.granted.push(granted);
        }
        if let Some(freed_ns) = freed_by_another(case, hold) {
            domain.freed.push((freed_ns, index));
        }
        if let Some(sent_ns) = hold.releasing_ns {
            let answered_ns = hold.released.map_or(u64::MAX, |(at_ns, _)| at_ns);
            let release = (sent_ns, answered_ns, index, answered_ns);
            domain.releases.push(release);
        }
    }
    for domain in domains.values_mut() {
        domain.freed.sort_unstable();
        domain.releases.sort_unstable();
        let mut first_asked_ns = u64::MAX;
        for (_, asked_ns, _) in domain.granted.iter_mut().rev() {
            first_asked_ns = first_asked_ns.min(*asked_ns);
            *asked_ns = first_asked_ns;
        }
        let mut all_answered_ns = 0;
        for (.., answered_ns) in &mut domain.releases {
            all_answered_ns = all_answered_ns.max(*answered_ns);
            *answered_ns = all_answered_ns;
        }
    }
    domains
}

impl Domain {
    /// Returns the hold that a release has freed: the one that its server was seen to
    /// release in the meantime, or else the latest that had begun by then.
    fn victim(&self, case: &Case, own: usize, from_ns: u64, to_ns: u64) -> Option<usize> {
        let holds = &case.holds.all;
        let is_others = |index: usize| holds[index].worker != holds[own].worker;
        let heard_by_ns = to_ns.saturating_add(HEARD_WITHIN_NS);
        let first = self.freed.partition_point(|&(at_ns, _)| at_ns < from_ns);
        let seen = self.freed[first..].iter();
        let seen = seen.take_while(|&&(at_ns, _)| at_ns <= heard_by_ns);
        let seen = seen.map(|&(_, index)| index).filter(|&it| is_others(it));
        if let Some(latest) = seen.max() {
            return Some(latest);
        }
        let lasts = |other: &Hold| other.releasing_ns.is_none_or(|at_ns| at_ns >= from_ns);
        let asked = self
            .granted
            .partition_point(|&(_, first_ns, _)| first_ns <= to_ns);
        let asked = self.granted[..asked].iter().rev();
        let asked = asked.take_while(|&&(_, _, last_ns)| last_ns >= from_ns);
        let mut asked = asked.map(|&(index, ..)| index);
        asked.find(|&it| is_others(it) && holds[it].asked_ns <= to_ns && lasts(&holds[it]))
    }

    /// Returns the first other worker whose release was under way.
    fn releasing_at<'a>(&self, case: &Case<'_, 'a>, hold: &Hold, at_ns: u64) -> Option<&'a str> {
        let holds = &case.holds.all;
        let sent = self.releases.partition_point(|release| release.0 <= at_ns);
        let under_way = self.releases[..sent].iter().rev();
        let under_way = under_way.take_while(|release| release.3 >= at_ns);
        let by = under_way.filter(|&&(_, answered_ns, index, _)| {
            answered_ns >= at_ns && holds[index].worker != hold.worker
        });
        let by = by.map(|&(_, _, index, _)| index).min()?;
        Some(holds[by].worker)
    }
}

/// Returns when a server was seen to release a hold before its own worker had begun to.
fn freed_by_another(case: &Case, hold: &Hold) -> Option<u64> {
    // A failed try at several servers is undone under the same owner.
    if !hold.is_sound || hold.grant.is_none() || case.servers.needed(hold) > 1 {
        return None;
    }
    let own = hold.owner()?;
    let stays = case.servers.stays(hold);
    let released = stays.iter().filter(|stay| stay.owner == Some(own));
    let released_ns = released.filter_map(|stay| match stay.end {
        Some((end_ns, StayEnd::Released)) => Some(end_ns),
        _ => None,
    });
    let freed_ns = released_ns.min()?;
    // A silent release comes after the worker's last report.
    let is_own = match (hold.given_up_ns(), hold.over_ns) {
        (Some(given_up_ns), _) => freed_ns >= given_up_ns,
        // A worker that went on silently may have released it with its last report.
        (None, Some(_)) if hold.is_left || hold.released.is_some() => freed_ns >= hold.to_ns,
        // A killed worker releases nothing.
        (None, Some(_)) => false,
        (None, None) => true,
    };
    (!is_own).then_some(freed_ns)
}
