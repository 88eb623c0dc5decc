//! The promises that nobody learns of a grant that is over already, and that nobody who
//! can read its clock goes on after the end.

use super::*;

/// The time between the last look at the lease and the report of it.
const SAID_WITHIN_NS: u64 = 10_000_000;

pub(super) fn breaks<'a>(case: &Case<'_, 'a>) -> Vec<Break<'a>> {
    let mut found = Vec::new();
    for (index, hold) in granted(&case.holds.all) {
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
            let detail = format!(
                "{} was told at {at} that it holds {}, and {words}",
                hold.worker, hold.key
            );
            let what = What(ViolationKind::AcquiredTooLate, hold.from_ns, detail);
            let excuse = excuses::lease_cut_short(case, hold, hold.from_ns);
            found.push(Break::by(case, index, None, what).excused_by(excuse));
        }
        // A session goes on being renewed without a report.
        if let (Some(wrote_ns), Some(until_ns)) = (hold.wrote_late_ns, hold.valid_until_ns)
            && !hold.service_plan.renews_silently
        {
            let detail = format!(
                "{} sent a write at {} under a hold that it knew to end at {}",
                hold.worker,
                seconds(case, wrote_ns),
                seconds(case, until_ns)
            );
            let what = What(ViolationKind::ClaimedPastValidity, wrote_ns, detail);
            found.push(Break::by(case, index, None, what));
        }
    }
    found
}
