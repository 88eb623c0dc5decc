//! Broken promises of the lock by true times, which only the world knows.

use super::truth::{End, Grant};
use super::world::Played;
use fencepost::model::ViolationKind::{self, *};
use std::collections::BTreeSet;

pub fn of(played: &Played) -> BTreeSet<ViolationKind> {
    let truth = &played.truth;
    let mut broken = BTreeSet::new();
    for grant in &truth.grants {
        match grant.end {
            End::Overwritten => broken.insert(GrantedWhileHeld),
            End::FreedByAnother => broken.insert(FreedAnother),
            End::None | End::Released | End::Expired | End::Forgotten => false,
        };
    }
    for (index, grant) in truth.grants.iter().enumerate() {
        for next in &truth.grants[index + 1..] {
            if (next.service, next.key) == (grant.service, grant.key) {
                compare(grant, next, &mut broken);
            }
        }
    }
    for claim in &truth.claims {
        match truth.grant_of(&claim.owner) {
            None => broken.insert(ClaimedNotGranted),
            Some(grant) if grant.to_ns <= claim.at_ns && grant.end == End::Expired => {
                broken.insert(AcquiredTooLate)
            }
            Some(_) => false,
        };
    }
    if truth.stuck_from_ns.is_some() {
        broken.insert(NeverGranted);
    }
    if played.settings.queue && out_of_order(played) {
        broken.insert(GrantedOutOfOrder);
    }
    broken
}

fn compare(grant: &Grant, next: &Grant, broken: &mut BTreeSet<ViolationKind>) {
    if next.from_ns < grant.to_ns {
        broken.insert(GrantedWhileHeld);
    }
    if next.owner == grant.owner {
        broken.insert(RenewalRecreated);
    } else if next.token == grant.token {
        broken.insert(TokenGrantedTwice);
    } else if next.token < grant.token {
        broken.insert(TokenNotGrowing);
    }
}

fn out_of_order(played: &Played) -> bool {
    let arrivals = &played.truth.arrivals;
    arrivals.iter().enumerate().any(|(index, first)| {
        let later = arrivals[index + 1..].iter();
        let mut later = later.filter(|next| (next.service, next.key) == (first.service, first.key));
        later.any(|next| {
            let passed = first.granted_ns.is_none_or(|at| next.granted_ns < Some(at));
            next.granted_ns.is_some() && passed && !first.withdrawn
        })
    })
}
