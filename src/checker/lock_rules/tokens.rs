//! Later grants have higher tokens, and no two have the same.

use super::{Break, Case, by_domain, excuses, seconds};
use crate::checker::holds::Hold;
use crate::model::{FencingToken, ViolationKind};
use std::collections::{HashMap, HashSet};

/// Of keys that are `in_doubt` only grants that cannot overlap are compared.
pub(super) fn breaks<'a>(case: &Case<'_, 'a>, in_doubt: &HashSet<&str>) -> Vec<Break<'a>> {
    let holds = &case.holds.all;
    let mut found = Vec::new();
    for indexes in by_domain(holds).into_values() {
        let has_token = |index: &usize| holds[*index].token().is_some();
        let granted: Vec<usize> = indexes.into_iter().filter(has_token).collect();
        let mut first_with: HashMap<Option<FencingToken>, usize> = HashMap::new();
        // Those before in the order of grants, by how high their tokens are.
        let mut highest: Option<usize> = None;
        let mut asked: Vec<usize> = granted.clone();
        asked.sort_by_key(|&index| holds[index].asked_ns);
        let mut certain = granted.iter().copied().peekable();
        let mut highest_before: HashMap<usize, usize> = HashMap::new();
        for index in asked {
            while let Some(before) =
                certain.next_if(|&it| holds[it].from_ns <= holds[index].asked_ns)
            {
                if highest.is_none_or(|it| holds[it].token() < holds[before].token()) {
                    highest = Some(before);
                }
            }
            highest_before.extend(highest.map(|it| (index, it)));
        }
        let mut previous: Option<usize> = None;
        for &index in &granted {
            let hold = &holds[index];
            if let Some(&first) = first_with.get(&hold.token()) {
                found.push(unexcused(case, first, index, &granted));
            } else {
                first_with.insert(hold.token(), index);
                let certain = highest_before.get(&index).copied();
                let waited_for = previous.filter(|&it| {
                    !in_doubt.contains(hold.key) && comes_before(case, &holds[it], hold)
                });
                let before = certain.into_iter().chain(waited_for);
                let higher = before.filter(|&it| holds[it].token() > hold.token());
                if let Some(higher) = higher.max_by_key(|&it| holds[it].token()) {
                    found.push(unexcused(case, higher, index, &granted));
                }
            }
            previous = Some(index);
        }
    }
    found
}

/// What is excused against one earlier grant may not be against another, which came
/// after the fault.
fn unexcused<'a>(case: &Case<'_, 'a>, before: usize, index: usize, granted: &[usize]) -> Break<'a> {
    let first = broken(case, before, index);
    if first.excuse.is_none() {
        return first;
    }
    let holds = &case.holds.all;
    let hold = &holds[index];
    let earlier = granted
        .iter()
        .copied()
        .filter(|&it| holds[it].from_ns <= hold.asked_ns && holds[it].token() >= hold.token());
    let mut others = earlier.map(|it| broken(case, it, index));
    let other = others.find(|other| other.excuse.is_none());
    other.unwrap_or(first)
}

/// Whether a grant that was told first also came first: where the other one had
/// been given before and was not over, both would have held the key.
fn comes_before(case: &Case, first: &Hold, second: &Hold) -> bool {
    let Some(ttl_ns) = second.ttl_ns else {
        return false;
    };
    let lasts = second.asked_ns.saturating_add(ttl_ns) > first.from_ns;
    let excused = excuses::lease_cut_short(case, second.service, second.asked_ns, second.from_ns);
    lasts && excused.is_none() && first.worker != second.worker
}

fn broken<'a>(case: &Case<'_, 'a>, before: usize, index: usize) -> Break<'a> {
    let holds = &case.holds.all;
    let (first, second) = (&holds[before], &holds[index]);
    let number = |hold: &Hold| hold.token().map_or(0, |token| token.0);
    let (one, other) = (number(first), number(second));
    let at = seconds(case, second.from_ns);
    let (kind, detail) = match one == other {
        true => (
            ViolationKind::TokenGrantedTwice,
            format!(
                "{} was granted {} with token {other} at {at}, the token that {} had been granted",
                second.worker, second.key, first.worker
            ),
        ),
        false => (
            ViolationKind::TokenNotGrowing,
            format!(
                "{} was granted {} with token {other} at {at}, after {} had been granted token {one}",
                second.worker, second.key, first.worker
            ),
        ),
    };
    Break {
        kind,
        key: second.key,
        at_ns: second.from_ns,
        holds: vec![before, index],
        workers: vec![second.worker, first.worker],
        detail,
        excuse: excuses::data_lost(case, first.service, first.asked_ns, second.from_ns),
    }
}
