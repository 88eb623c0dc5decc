//! The promise that later grants have higher tokens, and no two have the same.

use super::*;

/// Returns the breaks. For keys that are `in_doubt`, only grants that cannot overlap are
/// compared.
pub(super) fn breaks<'a>(case: &Case<'_, 'a>, in_doubt: &HashSet<&str>) -> Vec<Break<'a>> {
    let holds = &case.holds.all;
    let mut found = Vec::new();
    for indexes in by_domain(holds).into_values() {
        let has_token = |index: &usize| holds[*index].token().is_some();
        let granted: Vec<usize> = indexes.into_iter().filter(has_token).collect();
        let mut first_with: HashMap<Option<FencingToken>, usize> = HashMap::new();
        // The earlier grant with the highest token.
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
        let mut since = SinceFault::default();
        let mut previous: Option<usize> = None;
        for &index in &granted {
            let hold = &holds[index];
            if let Some(&first) = first_with.get(&hold.token()) {
                found.push(since.unexcused(case, first, index, &granted));
            } else {
                first_with.insert(hold.token(), index);
                let certain = highest_before.get(&index).copied();
                let waited_for = previous.filter(|&it| {
                    !in_doubt.contains(hold.key) && comes_before(case, &holds[it], hold)
                });
                let before = certain.into_iter().chain(waited_for);
                let higher = before.filter(|&it| holds[it].token() > hold.token());
                if let Some(higher) = higher.max_by_key(|&it| holds[it].token()) {
                    found.push(since.unexcused(case, higher, index, &granted));
                }
            }
            previous = Some(index);
        }
    }
    found
}

/// The grants since the last fault that made the service lose its data, as far as they
/// certainly came before the grant in question. A break that is excused against one
/// earlier grant may not be excused against another, which came after the fault.
#[derive(Default)]
struct SinceFault {
    over_ns: u64,
    /// The index where they begin, and the index of the first that was not looked at yet.
    from: usize,
    next: usize,
    highest: Option<FencingToken>,
}

impl SinceFault {
    fn unexcused<'a>(
        &mut self,
        case: &Case<'_, 'a>,
        before: usize,
        index: usize,
        granted: &[usize],
    ) -> Break<'a> {
        let first = broken(case, before, index);
        if first.excuse.is_none() {
            return first;
        }
        let holds = &case.holds.all;
        let hold = &holds[index];
        let over_ns = excuses::data_lost_by(case, hold.service, hold.from_ns).unwrap_or(0);
        if over_ns != self.over_ns {
            let from = granted.partition_point(|&it| holds[it].from_ns <= over_ns);
            *self = SinceFault {
                over_ns,
                from,
                next: from,
                highest: None,
            };
        }
        let is_after = |it: usize| holds[it].asked_ns > over_ns;
        while let Some(&it) = granted.get(self.next)
            && holds[it].from_ns < hold.from_ns
        {
            self.highest = self.highest.max(holds[it].token().filter(|_| is_after(it)));
            self.next += 1;
        }
        if self.highest < hold.token() {
            return first;
        }
        let mut earlier = granted[self.from..self.next].iter().copied();
        let other = earlier.find(|&it| {
            is_after(it) && holds[it].from_ns <= hold.asked_ns && holds[it].token() >= hold.token()
        });
        other.map_or(first, |other| broken(case, other, index))
    }
}

/// Returns whether the grant that was reported first also came first: if the other one
/// had been given before and was not over, both would have held the key.
fn comes_before(case: &Case, first: &Hold, second: &Hold) -> bool {
    let Some(ttl_ns) = second.ttl_ns else {
        return false;
    };
    let lasts = second.asked_ns.saturating_add(ttl_ns) > first.from_ns;
    let excused = excuses::lease_cut_short(case, second, second.from_ns);
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
    let what = What(kind, second.from_ns, detail);
    let excuse = excuses::data_lost(case, first, second.from_ns);
    Break::by(case, index, Some(before), what).excused_by(excuse)
}
