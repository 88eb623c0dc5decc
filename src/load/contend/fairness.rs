use crate::model::{ArrivalEnd, Fairness};
use std::collections::HashMap;

/// The outcome of one arrival, as far as it matters for fairness.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived {
    pub(super) key: u64,
    /// The contender that took it; `None` if it never left the backlog.
    pub(super) contender: Option<u32>,
    pub(super) intended_ns: u64,
    /// The time of the grant if there was one, else the end of the wait.
    pub(super) ended_ns: u64,
    pub(super) end: ArrivalEnd,
}

/// Compares the order of arrivals with the order of acquisitions, key by key.
///
/// Arrivals of one key are ranked by their intended time. A grant is out of order if any
/// arrival of a lower rank was still waiting for that key: not granted yet, and neither timed
/// out nor failed nor cancelled. An arrival is overtaken by each one of a higher rank that was
/// granted before it. Arrivals that never waited (turned away) are left out. It costs O(n log n).
pub(super) fn fairness(arrived: &[Arrived]) -> Fairness {
    let mut waited: Vec<&Arrived> = arrived.iter().filter(|one| waited(one)).collect();
    // The sort is stable: simultaneous arrivals keep the order in which they were recorded.
    waited.sort_by_key(|one| (one.key, one.intended_ns));
    let mut sums = Sums::default();
    for of_key in waited.chunk_by(|one, next| one.key == next.key) {
        sums.add_key(of_key);
    }
    let of_grants = |count: u64| match sums.grants {
        0 => 0.0,
        grants => count as f64 / grants as f64,
    };
    Fairness {
        out_of_order: of_grants(sums.out_of_order),
        mean_overtakes: of_grants(sums.overtakes),
        max_overtakes: sums.max_overtakes,
        jain: jain(&waited),
        worst_wait_us: worst_wait_us(&waited),
        starved: sums.starved,
    }
}

fn waited(one: &Arrived) -> bool {
    one.end != ArrivalEnd::TurnedAway
}

fn is_granted(one: &Arrived) -> bool {
    one.end == ArrivalEnd::Granted
}

#[derive(Default)]
struct Sums {
    grants: u64,
    out_of_order: u64,
    overtakes: u64,
    max_overtakes: u64,
    starved: u64,
}

impl Sums {
    /// Adds the arrivals of one key, in the order of arrival: the index is the rank.
    fn add_key(&mut self, of_key: &[&Arrived]) {
        let mut by_end: Vec<usize> = (0..of_key.len()).collect();
        // At the same moment, grants come first: the others are then still waiting.
        by_end.sort_by_key(|&rank| (of_key[rank].ended_ns, !is_granted(of_key[rank])));
        let mut granted = Ranks::new(of_key.len());
        let mut over = vec![false; of_key.len()];
        let mut first_waiting = 0;
        for rank in by_end {
            let later_first = granted.above(rank);
            if is_granted(of_key[rank]) {
                while over[first_waiting] {
                    first_waiting += 1;
                }
                self.grants += 1;
                self.out_of_order += u64::from(first_waiting < rank);
                self.overtakes += later_first;
                self.max_overtakes = self.max_overtakes.max(later_first);
                granted.add(rank);
            } else if of_key[rank].end != ArrivalEnd::Failed {
                self.starved += u64::from(later_first > 0);
            }
            over[rank] = true;
        }
    }
}

/// A Fenwick tree that counts how many of the added ranks are above a given one.
struct Ranks {
    tree: Vec<u64>,
    added: u64,
}

impl Ranks {
    fn new(count: usize) -> Ranks {
        Ranks {
            tree: vec![0; count + 1],
            added: 0,
        }
    }

    fn add(&mut self, rank: usize) {
        self.added += 1;
        let mut node = rank + 1;
        while node < self.tree.len() {
            self.tree[node] += 1;
            node += node & node.wrapping_neg();
        }
    }

    fn above(&self, rank: usize) -> u64 {
        let mut up_to_rank = 0;
        let mut node = rank + 1;
        while node > 0 {
            up_to_rank += self.tree[node];
            node &= node - 1;
        }
        self.added - up_to_rank
    }
}

/// Returns Jain's index over the grants of each contender that took an arrival; 1 if none did.
fn jain(arrived: &[&Arrived]) -> f64 {
    let mut grants: HashMap<u32, u64> = HashMap::new();
    for one in arrived {
        if let Some(contender) = one.contender {
            *grants.entry(contender).or_default() += u64::from(is_granted(one));
        }
    }
    let grants = || grants.values().map(|&count| count as f64);
    let sum: f64 = grants().sum();
    let squares: f64 = grants().map(|count| count * count).sum();
    if squares == 0.0 {
        return 1.0;
    }
    sum * sum / (grants().count() as f64 * squares)
}

fn worst_wait_us(arrived: &[&Arrived]) -> u64 {
    let waited = arrived.iter().filter(|one| one.end != ArrivalEnd::Failed);
    let waits = waited.map(|one| one.ended_ns.saturating_sub(one.intended_ns) / 1_000);
    waits.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ArrivalEnd::{Failed, Granted, StillWaiting, TimedOut, TurnedAway};

    /// Returns arrivals of one key; the contender is the index.
    fn arrived(rows: &[(u64, u64, ArrivalEnd)]) -> Vec<Arrived> {
        let rows = rows.iter().zip(0..);
        rows.map(|(&(intended_us, ended_us, end), index)| Arrived {
            key: 1,
            contender: Some(index),
            intended_ns: intended_us * 1_000,
            ended_ns: ended_us * 1_000,
            end,
        })
        .collect()
    }

    #[test]
    fn first_come_first_served_is_fair() {
        let fair = fairness(&arrived(&[
            (1, 10, Granted),
            (2, 20, Granted),
            (3, 30, Granted),
        ]));
        let expected = Fairness {
            jain: 1.0,
            worst_wait_us: 27,
            ..Fairness::default()
        };
        assert_eq!(fair, expected);
    }

    #[test]
    fn the_last_come_first_served_overtakes_everybody() {
        let unfair = fairness(&arrived(&[
            (1, 30, Granted),
            (2, 20, Granted),
            (3, 10, Granted),
        ]));
        assert_eq!(unfair.out_of_order, 2.0 / 3.0);
        assert_eq!(unfair.mean_overtakes, 1.0);
        assert_eq!(unfair.max_overtakes, 2);
        assert_eq!(unfair.worst_wait_us, 29);
    }

    #[test]
    fn who_came_after_the_grant_was_not_overtaken() {
        let fair = fairness(&arrived(&[(5, 6, Granted), (1, 2, Granted)]));
        assert_eq!((fair.out_of_order, fair.max_overtakes), (0.0, 0));
    }

    #[test]
    fn who_was_overtaken_and_got_nothing_starved() {
        let unfair = fairness(&arrived(&[
            (1, 50, TimedOut),
            (2, 40, Granted),
            (3, 60, StillWaiting),
            (4, 55, Granted),
            // No later arrival was granted.
            (5, 60, StillWaiting),
            // It had given up before the later one was granted.
            (0, 30, TimedOut),
            (0, 70, Failed),
            (0, 0, TurnedAway),
        ]));
        assert_eq!(unfair.starved, 2);
        assert_eq!(unfair.out_of_order, 1.0);
        assert_eq!(unfair.mean_overtakes, 0.0, "of those who were granted");
        assert_eq!(unfair.worst_wait_us, 57);
    }

    #[test]
    fn keys_are_apart() {
        let mut rows = arrived(&[(1, 30, Granted), (2, 20, Granted)]);
        rows[1].key = 2;
        assert_eq!(fairness(&rows).out_of_order, 0.0);
    }

    #[test]
    fn one_who_gets_all_is_one_of_n() {
        let mut rows = arrived(&[(1, 2, Granted), (3, 4, Granted), (5, 6, TimedOut)]);
        rows[1].contender = Some(0);
        assert_eq!(fairness(&rows).jain, 0.5, "two arrived, and one got both");
        rows[2].contender = None;
        assert_eq!(fairness(&rows).jain, 1.0);
        assert_eq!(fairness(&[]).jain, 1.0);
    }

    #[test]
    fn a_count_by_hand_says_the_same_of_random_orders() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..50 {
            // No two moments are equal, so that there is one right answer.
            let mut moments: Vec<u64> = (0..80).collect();
            random.shuffle(&mut moments);
            let pairs = moments.chunks(2);
            let pairs = pairs.map(|pair| (pair[0].min(pair[1]), pair[0].max(pair[1]), Granted));
            let rows = arrived(&pairs.collect::<Vec<_>>());
            let overtakes = |one: &Arrived| {
                let went_first = rows.iter().filter(|other| {
                    other.intended_ns > one.intended_ns && other.ended_ns < one.ended_ns
                });
                went_first.count() as u64
            };
            let found = fairness(&rows);
            assert_eq!(
                found.max_overtakes,
                rows.iter().map(overtakes).max().unwrap()
            );
            let sum: u64 = rows.iter().map(overtakes).sum();
            assert_eq!(found.mean_overtakes, sum as f64 / 40.0);
        }
    }
}
