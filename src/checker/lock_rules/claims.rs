//! Who claims a key has been granted it by its servers.

use super::{Break, Case, seconds};
use crate::model::ViolationKind;

pub(super) fn breaks<'a>(case: &Case<'_, 'a>) -> Vec<Break<'a>> {
    let mut found = Vec::new();
    for (index, hold) in case.holds.all.iter().enumerate() {
        if hold.grant.is_none() || !hold.is_sound || !case.servers.saw(hold.service, hold.key) {
            continue;
        }
        if case.servers.may_have_missed(hold) || !case.record.gaps.is_empty() {
            continue;
        }
        let nodes = case.servers.granted_by(hold);
        let needed = case.servers.needed(hold);
        if nodes.len() >= needed {
            continue;
        }
        let held = case.holds.all.iter().enumerate().rev().find(|(_, other)| {
            other.key == hold.key
                && other.service == hold.service
                && other.worker != hold.worker
                && other.from_ns <= hold.from_ns
                && case.servers.held_at(other, hold.from_ns) == Some(true)
        });
        let (whose, words) = match held {
            Some((at, other)) => (Some(at), format!("they held it for {}", other.worker)),
            None if needed > 1 => (None, format!("{} of {needed} had granted it", nodes.len())),
            None => (
                None,
                "they had granted it to nobody by that owner".to_owned(),
            ),
        };
        let other = whose.map(|at| case.holds.all[at].worker);
        found.push(Break {
            kind: ViolationKind::ClaimedNotGranted,
            key: hold.key,
            at_ns: hold.from_ns,
            holds: whose.into_iter().chain([index]).collect(),
            workers: [Some(hold.worker), other].into_iter().flatten().collect(),
            detail: format!(
                "{} claims {} from {} on, and its lock servers show otherwise: {words}",
                hold.worker,
                hold.key,
                seconds(case, hold.from_ns)
            ),
            excuse: None,
        });
    }
    found
}
