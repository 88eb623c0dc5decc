//! The state of each promise of the lock in a case.

use super::*;

const NO_TTL: &str = "no TTL in the record";
const NOBODY_LOOKED: &str = "nobody saw what the lock servers held";

pub(super) fn states(
    case: &Case,
    breaks: &[Break],
    contended: u64,
    lacks: &[Ability],
) -> BTreeMap<Promise, Kept> {
    let mut states = BTreeMap::new();
    if case.holds.asks.is_empty() && case.holds.all.is_empty() {
        return states;
    }
    for &promise in Promise::ALL {
        if let Some(state) = state(case, promise, contended, lacks) {
            states.insert(promise, state);
        }
    }
    for it in breaks {
        let Some(promise) = it.kind.promise() else {
            continue;
        };
        let state = match it.excuse {
            None => Kept::Broken,
            Some(_) if states.get(&promise) == Some(&Kept::Broken) => Kept::Broken,
            Some(_) => Kept::Excused,
        };
        states.insert(promise, state);
    }
    states
}

/// Returns the state of a promise for which no break was found, or `None` if it is not
/// promised.
fn state(case: &Case, promise: Promise, contended: u64, lacks: &[Ability]) -> Option<Kept> {
    let granted = || case.holds.all.iter().filter(|hold| hold.grant.is_some());
    let looked = granted().any(|hold| case.servers.saw(hold.service, hold.key));
    let has_ttl = case.holds.asks.iter().any(|ask| ask.ttl_ns.is_some());
    let kept = |tested: bool| match tested {
        true => Kept::Kept,
        false => Kept::NotTested,
    };
    let unless = |known: bool, why: &str, tested: bool| match (tested, known) {
        (true, false) => Kept::NotChecked(why.to_owned()),
        (tested, _) => kept(tested),
    };
    Some(match promise {
        Promise::Exclusion => {
            let covered = granted().any(|hold| hold.covered_to_ns.is_some());
            match covered || granted().count() == 0 {
                true => kept(contended > 0),
                false => Kept::NotChecked(NO_TTL.to_owned()),
            }
        }
        Promise::Tokens => {
            let tokens = granted().filter(|hold| hold.token().is_some()).count();
            match lacks.contains(&Ability::Token) || (tokens == 0 && granted().count() > 0) {
                true => Kept::NotOffered,
                false => kept(tokens > 1),
            }
        }
        Promise::Timeliness => {
            let told = granted().any(|hold| hold.granted_until_ns.is_some());
            let why = "workers do not say until when they hold, and nobody saw what the lock servers held";
            unless(told || looked, why, granted().count() > 0)
        }
        Promise::Release => {
            let released = granted().any(|hold| hold.released.is_some());
            unless(looked, NOBODY_LOOKED, released)
        }
        Promise::Loss => match lacks.contains(&Ability::Lost) {
            true => Kept::NotOffered,
            false => kept(granted().any(|hold| hold.lost_ns.is_some())),
        },
        Promise::Progress => unless(has_ttl, NO_TTL, !case.holds.asks.is_empty()),
        Promise::Order => {
            let in_order = case.holds.asks.iter().any(|ask| {
                let plan = case.record.plan.worker(ask.worker);
                plan.is_some_and(|plan| plan.in_order)
            });
            if !in_order {
                return None;
            }
            kept(contended > 0)
        }
        Promise::Renewal => {
            let renewed = granted().any(|hold| hold.renewals > 0);
            unless(looked, NOBODY_LOOKED, renewed)
        }
    })
}
