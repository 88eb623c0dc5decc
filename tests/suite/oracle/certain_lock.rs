//! When a record makes a broken promise of a lock certain: said aloud, and slowly.
//!
//! This is no second judge: it claims only what the world can stand in for, and a
//! judge may see more.

use super::said::{Said, SaidHold};
use super::settings::{MS, SECOND};
use fencepost::model::ReleaseOutcome;
use fencepost::model::ViolationKind::{self, *};
use fencepost::model::{CaseRecord, LockEventKind};

/// What the lock of one service broke.
pub fn broken(record: &CaseRecord, said: &Said, service: &str) -> Vec<ViolationKind> {
    let said = &said.of(service);
    let rules: [(ViolationKind, bool); 10] = [
        (GrantedWhileHeld, two_hold(said)),
        (ClaimedNotGranted, claimed(record, said)),
        (TokenNotGrowing, token_not_growing(said)),
        (TokenGrantedTwice, token_twice(said)),
        (AcquiredTooLate, too_late(record, said)),
        (FreedAnother, freed_another(record, said)),
        (ClaimedPastValidity, past_validity(record, said)),
        (NeverGranted, never_granted(record, said)),
        (GrantedOutOfOrder, out_of_order(record, said)),
        (RenewalRecreated, recreated(record, service)),
    ];
    let broken = rules.into_iter().filter(|(_, is_broken)| *is_broken);
    broken.map(|(kind, _)| kind).collect()
}

fn pairs<'s, 'a>(said: &'s Said<'a>) -> impl Iterator<Item = (&'s SaidHold<'a>, &'s SaidHold<'a>)> {
    let holds = said.holds.iter().enumerate();
    holds.flat_map(|(index, one)| {
        let others = said.holds.iter().enumerate();
        let others = others.filter(move |(other, hold)| *other != index && hold.is_with(one));
        others.map(move |(_, other)| (one, other))
    })
}

/// A moment at which two had been told, and both were covered.
fn two_hold(said: &Said) -> bool {
    let margin_ns = said.margin_ns();
    pairs(said).any(|(one, other)| {
        let both_told = one.acquired_ns.max(other.acquired_ns);
        both_told + margin_ns < one.covered_ns.min(other.covered_ns)
    })
}

/// A bystander that saw everything did not see this grant.
fn claimed(record: &CaseRecord, said: &Said) -> bool {
    if record.lock_servers.is_empty() || server_was_away(record) {
        return false;
    }
    let granted = |owner: &str| {
        let mut rows = record.locks.iter();
        rows.any(|row| {
            row.kind == LockEventKind::Granted
                && row.owner.as_deref().is_none_or(|known| known == owner)
        })
    };
    said.holds.iter().any(|hold| !granted(hold.owner))
}

fn server_was_away(record: &CaseRecord) -> bool {
    let mut rows = record.faults.iter();
    rows.any(|row| record.lock_servers.contains(&row.target))
}

fn token_not_growing(said: &Said) -> bool {
    pairs(said).any(|(one, next)| {
        let over = matches!(one.released, Some((at, ReleaseOutcome::Released))
            if at + said.margin_ns() < next.asked_ns);
        over && one.token.is_some() && next.token.is_some() && next.token < one.token
    })
}

fn token_twice(said: &Said) -> bool {
    pairs(said).any(|(one, other)| one.token.is_some() && one.token == other.token)
}

fn too_late(record: &CaseRecord, said: &Said) -> bool {
    let margin_ns = said.margin_ns();
    said.holds.iter().any(|hold| {
        // A renewal comes after the grant, and moves only the end of what is valid.
        let first_renewal = hold.confirmed_ns > hold.acquired_ns;
        let past = hold.valid_until_ns.filter(|_| !first_renewal);
        // From the look at the clock to the word about it.
        let said_ns = 10 * MS;
        let past = past.is_some_and(|end| end + margin_ns + said_ns < hold.acquired_ns);
        let ended = record.locks.iter().any(|row| {
            row.kind == LockEventKind::Expired
                && row.owner.as_deref() == Some(hold.owner)
                && row.at_ns + margin_ns < hold.acquired_ns
        });
        past || ended
    })
}

fn freed_another(record: &CaseRecord, said: &Said) -> bool {
    let margin_ns = said.margin_ns();
    said.holds.iter().any(|hold| {
        let said_so = matches!(hold.released, Some((_, ReleaseOutcome::FreedAnother)));
        let heard = record.locks.iter().any(|row| {
            row.kind == LockEventKind::Released
                && row.owner.as_deref() == Some(hold.owner)
                && hold
                    .releasing_ns
                    .is_none_or(|at| row.at_ns + margin_ns < at)
        });
        said_so || heard
    })
}

fn recreated(record: &CaseRecord, service: &str) -> bool {
    let rows = record.locks.iter().enumerate();
    let rows = rows.filter(|(_, row)| row.node.starts_with(service));
    let mut expired = rows.filter(|(_, row)| row.kind == LockEventKind::Expired);
    expired.any(|(index, expired)| {
        let mut later = record.locks[index..].iter();
        later.any(|row| {
            let lives = matches!(row.kind, LockEventKind::Granted | LockEventKind::Renewed);
            let same = (&row.node, &row.key, &row.owner);
            lives && same == (&expired.node, &expired.key, &expired.owner)
        })
    })
}

fn is_disturbed(record: &CaseRecord, worker: &str) -> bool {
    let mut rows = record.faults.iter();
    rows.any(|row| row.target.split([' ', ',']).any(|name| name == worker))
}

/// A process may be put aside for a moment between its look at the clock and what it
/// says next; and a session at etcd is renewed without a word.
fn past_validity(record: &CaseRecord, said: &Said) -> bool {
    let margin_ns = said.margin_ns() + SECOND;
    let mut holds = said.holds.iter().filter(|hold| hold.service != "etcd");
    holds.any(|hold| {
        let mut writes = hold.free_writes.iter();
        let late = writes.any(|(at, end)| end.is_some_and(|end| end + margin_ns < *at));
        late && !is_disturbed(record, hold.worker)
    })
}

fn never_granted(record: &CaseRecord, said: &Said) -> bool {
    let Some(ended_ns) = record.ended_ns else {
        return false;
    };
    let mut waiting = said.asks.iter().filter(|ask| {
        ask.acquired_ns.is_none() && !ask.failed && !is_disturbed(record, ask.worker)
    });
    waiting.any(|ask| {
        let others = said.holds.iter();
        let others = others.filter(|hold| (hold.service, hold.key) == (ask.service, ask.key));
        let free = others.map(|hold| match hold.released {
            Some((at, ReleaseOutcome::Released)) => at,
            _ => {
                // What it sent last may have arrived a little later.
                let dead = record.faults.iter().filter(|row| row.target == hold.worker);
                let dead = dead.map(|row| row.at_ns).max().unwrap_or(0);
                let given_up = hold.given_up_ns.unwrap_or(0);
                hold.confirmed_ns.max(dead).max(given_up) + said.ttl_ns + SECOND
            }
        });
        let from_ns = free.max().unwrap_or(0).max(ask.at_ns);
        from_ns + 2 * said.ttl_ns + 10 * SECOND + said.margin_ns() < ended_ns
    })
}

fn out_of_order(record: &CaseRecord, said: &Said) -> bool {
    let in_order = record.plan.workers.values().all(|plan| plan.in_order);
    let quiet = record.faults.is_empty() && said.asks.iter().all(|ask| !ask.failed);
    in_order
        && quiet
        && said.asks.iter().any(|first| {
            said.asks.iter().any(|second| {
                let same = (first.service, first.key) == (second.service, second.key);
                let (Some(one), Some(two)) = (first.acquired_ns, second.acquired_ns) else {
                    return false;
                };
                let came_first = first.at_ns + SECOND + said.margin_ns() < second.at_ns;
                same && came_first && two + said.margin_ns() < one
            })
        })
}
