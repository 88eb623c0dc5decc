use super::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The number of overlaps of each kind that are named; there may be as many as pairs of
/// holds.
const MOST_NAMED: usize = 200;

/// Pairs of workers that held one key at the same time, and pairs that may have.
#[derive(Default)]
pub(super) struct Overlaps {
    pub definite: u64,
    pub possible: u64,
    /// The first of both, in the order of the later hold's beginning.
    pub named: Vec<Overlap>,
    definite_named: usize,
}

/// Sweeps over the holds in the order of their beginnings. All pairs are counted by the
/// number of holds that have not ended yet, so many holds at once cost no more than as
/// many one after the other.
pub(super) fn overlaps(holds: &[Hold]) -> Overlaps {
    let mut keys: HashMap<&str, Key> = HashMap::new();
    let mut found = Overlaps::default();
    for hold in holds {
        keys.entry(hold.key).or_default().add(hold, &mut found);
    }
    found
}

impl Overlaps {
    fn has_room(&self, definite: bool) -> bool {
        let named = match definite {
            true => self.definite_named,
            false => self.named.len() - self.definite_named,
        };
        named < MOST_NAMED
    }

    fn name(&mut self, overlap: Overlap) {
        if self.has_room(overlap.definite) {
            self.definite_named += usize::from(overlap.definite);
            self.named.push(overlap);
        }
    }
}

/// The holds of one key so far.
#[derive(Default)]
struct Key<'h, 'a> {
    granted: Open<'a>,
    /// Includes holds that are uncertain, with their latest possible ends.
    all: Open<'a>,
    /// Holds that may still be named.
    holds: Vec<&'h Hold<'a>>,
}

impl<'h, 'a> Key<'h, 'a> {
    fn add(&mut self, hold: &'h Hold<'a>, found: &mut Overlaps) {
        let (from_ns, worker) = (hold.from_ns, hold.worker);
        let definite = match hold.grant {
            Some(_) => self.granted.others(worker, from_ns),
            None => 0,
        };
        let possible = match from_ns < possible_end_ns(hold) {
            true => self.all.others(worker, from_ns) - definite,
            false => 0,
        };
        found.definite += definite;
        found.possible += possible;
        let has_room = [true, false].map(|definite| found.has_room(definite));
        if (definite > 0 && has_room[0]) || (possible > 0 && has_room[1]) {
            let lasts = |earlier: &&Hold| possible_end_ns(earlier) > from_ns;
            self.holds.retain(lasts);
            for earlier in &self.holds {
                if let Some(overlap) = overlap(earlier, hold) {
                    found.name(overlap);
                }
            }
        }
        if has_room.contains(&true) {
            self.holds.push(hold);
        }
        if hold.grant.is_some() {
            self.granted.add(worker, hold.to_ns);
        }
        self.all.add(worker, possible_end_ns(hold));
    }
}

/// The holds that have not ended yet.
#[derive(Default)]
struct Open<'a> {
    ends: BinaryHeap<Reverse<(u64, &'a str)>>,
    by_worker: HashMap<&'a str, u64>,
}

impl<'a> Open<'a> {
    fn add(&mut self, worker: &'a str, end_ns: u64) {
        self.ends.push(Reverse((end_ns, worker)));
        *self.by_worker.entry(worker).or_default() += 1;
    }

    /// Counts the holds of other workers that end after `at_ns`; later calls never name
    /// an earlier moment. One worker never overlaps with itself: its rounds follow each
    /// other.
    fn others(&mut self, worker: &str, at_ns: u64) -> u64 {
        while let Some(&Reverse((end_ns, ended))) = self.ends.peek()
            && end_ns <= at_ns
        {
            self.ends.pop();
            if let Some(open) = self.by_worker.get_mut(ended) {
                *open -= 1;
            }
        }
        self.ends.len() as u64 - self.by_worker.get(worker).unwrap_or(&0)
    }
}

fn overlap(earlier: &Hold, later: &Hold) -> Option<Overlap> {
    if earlier.worker == later.worker {
        return None;
    }
    let from_ns = later.from_ns;
    let both_granted = earlier.grant.is_some() && later.grant.is_some();
    // A hold that was cut off at the moment of its grant has no length, and yet it was
    // held at that moment; so only its beginning has to lie inside the earlier hold.
    let definite = both_granted && from_ns < earlier.to_ns;
    let to_ns = if definite {
        earlier.to_ns.min(later.to_ns)
    } else {
        possible_end_ns(earlier).min(possible_end_ns(later))
    };
    (definite || from_ns < to_ns).then(|| Overlap {
        key: later.key.to_owned(),
        first: earlier.worker.to_owned(),
        second: later.worker.to_owned(),
        from_ns,
        to_ns,
        definite,
    })
}

fn possible_end_ns(hold: &Hold) -> u64 {
    hold.to_ns.max(hold.possibly_to_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Rounds of some workers on two keys, some of which fail or never end.
    fn history(seed: u64, rounds: u32) -> Vec<Event> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let mut history = Vec::new();
        for worker in 0..4 {
            let mut at_ns = next(50);
            for round in 0..rounds {
                let key = format!("k{}", next(2));
                let mut tell = |mut event: Value, later_ns: u64| {
                    at_ns += later_ns;
                    event["at_ns"] = json!(at_ns);
                    event["worker"] = json!(format!("w{worker}"));
                    event["round"] = json!(round);
                    history.push(serde_json::from_value(event).unwrap());
                };
                let (asked, held) = (next(9), next(30));
                tell(json!({ "event": "acquiring", "key": key }), asked);
                if next(4) == 0 {
                    let failed = json!({ "event": "failed", "during": "acquire", "error": "" });
                    tell(failed, held);
                    continue;
                }
                let owner = format!("{worker}-{round}");
                let acquired = json!({ "event": "acquired", "key": key, "owner": owner });
                tell(acquired, next(3));
                if next(5) > 0 {
                    tell(json!({ "event": "releasing", "key": key }), held);
                    let outcome = ["unknown", "released", "released"][next(3) as usize];
                    let released = json!({ "event": "released", "key": key, "outcome": outcome });
                    tell(released, next(9));
                }
            }
        }
        history
    }

    #[test]
    fn every_pair_is_counted_as_if_each_were_looked_at() {
        let mut both = [0, 0];
        for seed in 0..200 {
            let record = CaseRecord {
                history: history(seed, 6),
                ..CaseRecord::default()
            };
            let sound = Sound::of(&record);
            let holds = holds::of(&sound, &episodes::of(&[])).all;
            let mut all = Vec::new();
            for (index, later) in holds.iter().enumerate() {
                let earlier = holds[..index].iter();
                let earlier = earlier.filter(|earlier| {
                    earlier.key == later.key && possible_end_ns(earlier) > later.from_ns
                });
                all.extend(earlier.filter_map(|earlier| overlap(earlier, later)));
            }
            let found = overlaps(&holds);
            assert_eq!(found.named, all, "seed {seed}");
            let definite = all.iter().filter(|overlap| overlap.definite).count() as u64;
            assert_eq!(found.definite, definite, "seed {seed}");
            assert_eq!(found.possible, all.len() as u64 - definite, "seed {seed}");
            both = [both[0] + found.definite, both[1] + found.possible];
        }
        assert!(both[0] > 100 && both[1] > 100, "{both:?}");
    }
}
