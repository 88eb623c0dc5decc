//! A release never frees what its owner no longer holds.

use super::{Break, Case, seconds};
use crate::checker::holds::Hold;
use crate::checker::servers::{HEARD_WITHIN_NS, StayEnd};
use crate::model::{ReleaseOutcome, ViolationKind};

pub(super) fn breaks<'a>(case: &Case<'_, 'a>) -> Vec<Break<'a>> {
    let holds = &case.holds.all;
    let mut found: Vec<Break> = Vec::new();
    for (index, hold) in holds.iter().enumerate() {
        if let Some((released_ns, ReleaseOutcome::FreedAnother)) = hold.released {
            let from_ns = hold.releasing_ns.unwrap_or(hold.to_ns);
            let victim = victim(case, index, from_ns, released_ns);
            let whose = victim.map(|victim| holds[victim].worker);
            found.push(Break {
                kind: ViolationKind::FreedAnother,
                key: hold.key,
                at_ns: released_ns,
                holds: victim.into_iter().chain([index]).collect(),
                workers: [Some(hold.worker), whose].into_iter().flatten().collect(),
                detail: format!(
                    "{}'s release of {} freed what {} held",
                    hold.worker,
                    hold.key,
                    whose.unwrap_or("another owner")
                ),
                excuse: None,
            });
        }
    }
    for (index, hold) in holds.iter().enumerate() {
        if let Some(freed_ns) = freed_by_another(case, hold) {
            let is_told = found.iter().any(|it| it.holds.first() == Some(&index));
            let by = holds.iter().find(|other| {
                let sent_ns = other.releasing_ns.unwrap_or(u64::MAX);
                let answered_ns = other.released.map_or(u64::MAX, |(at_ns, _)| at_ns);
                other.key == hold.key
                    && other.service == hold.service
                    && other.worker != hold.worker
                    && (sent_ns..=answered_ns).contains(&freed_ns)
            });
            let by = by.map(|other| other.worker);
            if is_told {
                continue;
            }
            found.push(Break {
                kind: ViolationKind::FreedAnother,
                key: hold.key,
                at_ns: freed_ns,
                holds: vec![index],
                workers: by.into_iter().chain([hold.worker]).collect(),
                detail: format!(
                    "the lock of {} on {} was released at {}, and not by {}",
                    hold.worker,
                    hold.key,
                    seconds(case, freed_ns),
                    hold.worker
                ),
                excuse: None,
            });
        }
    }
    found
}

/// Whose hold a release has freed: the one that its server was seen to release
/// meanwhile, and otherwise the latest that had begun by then.
fn victim(case: &Case, own: usize, from_ns: u64, to_ns: u64) -> Option<usize> {
    let holds = &case.holds.all;
    let hold = &holds[own];
    let others = holds.iter().enumerate().rev();
    let mut others = others.filter(|(_, other)| {
        other.key == hold.key
            && other.service == hold.service
            && other.worker != hold.worker
            && other.grant.is_some()
    });
    let heard_by_ns = to_ns.saturating_add(HEARD_WITHIN_NS);
    let seen = others.clone().find(|(_, other)| {
        let freed_ns = freed_by_another(case, other);
        freed_ns.is_some_and(|freed_ns| (from_ns..=heard_by_ns).contains(&freed_ns))
    });
    if let Some((index, _)) = seen {
        return Some(index);
    }
    let lasts = |other: &Hold| other.releasing_ns.is_none_or(|at_ns| at_ns >= from_ns);
    let found = others.find(|(_, other)| other.asked_ns <= to_ns && lasts(other));
    found.map(|(index, _)| index)
}

/// When a server was seen to release a hold before its own worker had begun to.
fn freed_by_another(case: &Case, hold: &Hold) -> Option<u64> {
    // A try at several servers that comes to nothing is undone under the same owner.
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
    // What gives a lock back without a word does so after the worker's last one.
    let is_own = match (hold.given_up_ns(), hold.over_ns) {
        (Some(given_up_ns), _) => freed_ns >= given_up_ns,
        // Who went on without a word may have given it back with its last one.
        (None, Some(_)) if hold.is_left || hold.released.is_some() => freed_ns >= hold.to_ns,
        // Who was killed releases nothing.
        (None, Some(_)) => false,
        (None, None) => true,
    };
    (!is_own).then_some(freed_ns)
}
