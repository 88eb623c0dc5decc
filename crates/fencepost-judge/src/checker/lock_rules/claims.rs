//! The promise that a worker which claims a key was granted it by its servers.

use super::*;

pub(super) fn breaks<'a>(case: &Case<'_, 'a>) -> Vec<Break<'a>> {
    let mut found = Vec::new();
    let mut holders: Option<Holders> = None;
    if !case.record.gaps.is_empty() {
        return found;
    }
    for (index, hold) in granted(&case.holds.all) {
        if !case.servers.saw(hold.service, hold.key) || case.servers.may_have_missed(hold) {
            continue;
        }
        let nodes = case.servers.granted_by(hold);
        let needed = case.servers.needed(hold);
        if nodes.len() >= needed {
            continue;
        }
        let holders = holders.get_or_insert_with(|| Holders::of(case));
        let held = holders.at(case, hold);
        let words = match held {
            Some(at) => format!("they held it for {}", case.holds.all[at].worker),
            None if needed > 1 => format!("{} of {needed} had granted it", nodes.len()),
            None => "they had granted it to nobody by that owner".to_owned(),
        };
        let detail = format!(
            "{} claims {} from {} on, and its lock servers show otherwise: {words}",
            hold.worker,
            hold.key,
            seconds(case, hold.from_ns)
        );
        let what = What(ViolationKind::ClaimedNotGranted, hold.from_ns, detail);
        found.push(Break::by(case, index, held, what));
    }
    found
}

/// The workers for which the servers held each key.
struct Holders<'a> {
    /// For each key of each service, in the order of their beginnings: a hold, when it
    /// was over, and when all holds up to it were over.
    by_domain: HashMap<(&'a str, &'a str), Vec<Held>>,
}

type Held = (usize, u64, u64);

impl<'a> Holders<'a> {
    fn of(case: &Case<'_, 'a>) -> Holders<'a> {
        let mut by_domain: HashMap<_, Vec<Held>> = HashMap::new();
        for (index, hold) in case.holds.all.iter().enumerate() {
            if case.servers.stays(hold).is_empty() || !case.servers.saw(hold.service, hold.key) {
                continue;
            }
            let over = case.servers.let_go(hold);
            let over_ns = over.map_or(u64::MAX, |(over_ns, _)| over_ns);
            let held = by_domain.entry((hold.service, hold.key)).or_default();
            let all_over_ns = held.last().map_or(0, |before| before.2);
            held.push((index, over_ns, all_over_ns.max(over_ns)));
        }
        Holders { by_domain }
    }

    /// Returns the latest hold of another worker for which the servers held the key when
    /// a hold began.
    fn at(&self, case: &Case, hold: &Hold) -> Option<usize> {
        let (holds, at_ns) = (&case.holds.all, hold.from_ns);
        let held = self.by_domain.get(&(hold.service, hold.key))?;
        let begun = held.partition_point(|&(it, ..)| holds[it].from_ns <= at_ns);
        let mut held = held[..begun]
            .iter()
            .rev()
            .take_while(|(.., all_over_ns)| *all_over_ns > at_ns);
        let found =
            held.find(|&&(it, over_ns, _)| over_ns > at_ns && holds[it].worker != hold.worker);
        found.map(|&(it, ..)| it)
    }
}
