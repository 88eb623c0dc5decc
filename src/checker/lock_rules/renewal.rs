//! A renewal prolongs, and never re-creates.

use super::{Break, Case, seconds};
use crate::model::ViolationKind;

pub(super) fn breaks<'a>(case: &Case<'_, 'a>) -> Vec<Break<'a>> {
    let mut found = Vec::new();
    let holds = case.holds.all.iter().enumerate();
    for (index, hold) in holds.filter(|(_, hold)| hold.grant.is_some() && hold.is_sound) {
        let stays = case.servers.stays(hold);
        let own = stays.iter().filter(|stay| stay.owner == hold.owner());
        // Before the grant was told, one may have been tried for more than once.
        let recreated = own.filter_map(|stay| {
            let (end_ns, _) = stay.end?;
            let again_ns = stay.recreated_ns?;
            // A copy that hears of it anew brings nothing back.
            let is_a_copy = case.servers.needed(hold) == 1
                && stays.iter().any(|other| {
                    let lasts = other.end.is_none_or(|(at_ns, _)| at_ns > again_ns);
                    other.node != stay.node && other.from_ns < end_ns && lasts
                });
            if is_a_copy {
                return None;
            }
            (end_ns >= hold.from_ns).then_some((stay.node, end_ns, again_ns))
        });
        let Some((node, end_ns, again_ns)) = recreated.min_by_key(|it| it.2) else {
            continue;
        };
        found.push(Break {
            kind: ViolationKind::RenewalRecreated,
            key: hold.key,
            at_ns: again_ns,
            holds: vec![index],
            workers: vec![hold.worker],
            detail: format!(
                "the lock of {} on {} was gone from {node} at {}, and was there again for it at {}",
                hold.worker,
                hold.key,
                seconds(case, end_ns),
                seconds(case, again_ns)
            ),
            excuse: None,
        });
    }
    found
}
