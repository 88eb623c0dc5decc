//! The promise that a renewal prolongs a lock, and never re-creates one.

use super::*;

pub(super) fn breaks<'a>(case: &Case<'_, 'a>) -> Vec<Break<'a>> {
    let mut found = Vec::new();
    for (index, hold) in granted(&case.holds.all) {
        let stays = case.servers.stays(hold);
        let own = stays.iter().filter(|stay| stay.owner == hold.owner());
        // Before the grant was reported, the worker may have tried for it more than once.
        let recreated = own.filter_map(|stay| {
            let (end_ns, _) = stay.end?;
            let again_ns = stay.recreated_ns?;
            // A copy that receives the grant anew does not re-create it.
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
        let detail = format!(
            "the lock of {} on {} was gone from {node} at {}, and was there again for it at {}",
            hold.worker,
            hold.key,
            seconds(case, end_ns),
            seconds(case, again_ns)
        );
        let what = What(ViolationKind::RenewalRecreated, again_ns, detail);
        found.push(Break::by(case, index, None, what));
    }
    found
}
