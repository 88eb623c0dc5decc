//! Nobody is told of a grant that is over already, and nobody who can read its clock
//! goes on after the end.

use super::{Break, Case, excuses, seconds};
use crate::checker::servers::StayEnd;
use crate::model::ViolationKind;

/// Between the last look at the lease and the word about it.
const SAID_WITHIN_NS: u64 = 10_000_000;

pub(super) fn breaks<'a>(case: &Case<'_, 'a>) -> Vec<Break<'a>> {
    let mut found = Vec::new();
    let holds = case.holds.all.iter().enumerate();
    for (index, hold) in holds.filter(|(_, hold)| hold.grant.is_some() && hold.is_sound) {
        let at = seconds(case, hold.from_ns);
        let ended = case
            .servers
            .let_go(hold)
            .filter(|(_, end)| *end == StayEnd::Expired && case.servers.needed(hold) == 1);
        let ended_ns = ended.map(|(ended_ns, _)| ended_ns);
        let words = match (hold.granted_until_ns, ended_ns) {
            (Some(until_ns), _) if hold.from_ns > until_ns.saturating_add(SAID_WITHIN_NS) => {
                Some(format!("it was valid until {}", seconds(case, until_ns)))
            }
            (_, Some(ended_ns)) if hold.from_ns > ended_ns => Some(format!(
                "its server had let it go at {}",
                seconds(case, ended_ns)
            )),
            _ => None,
        };
        if let Some(words) = words {
            found.push(Break {
                kind: ViolationKind::AcquiredTooLate,
                key: hold.key,
                at_ns: hold.from_ns,
                holds: vec![index],
                workers: vec![hold.worker],
                detail: format!(
                    "{} was told at {at} that it holds {}, and {words}",
                    hold.worker, hold.key
                ),
                excuse: excuses::lease_cut_short(case, hold.service, hold.asked_ns, hold.from_ns),
            });
        }
        // A session goes on being renewed without a word.
        if let (Some(wrote_ns), Some(until_ns)) = (hold.wrote_late_ns, hold.valid_until_ns)
            && !excuses::is_etcd(hold.service)
        {
            found.push(Break {
                kind: ViolationKind::ClaimedPastValidity,
                key: hold.key,
                at_ns: wrote_ns,
                holds: vec![index],
                workers: vec![hold.worker],
                detail: format!(
                    "{} sent a write at {} under a hold that it knew to end at {}",
                    hold.worker,
                    seconds(case, wrote_ns),
                    seconds(case, until_ns)
                ),
                excuse: None,
            });
        }
    }
    found
}
