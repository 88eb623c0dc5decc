use super::fairness::{Arrived, fairness};
use super::*;
use std::collections::HashMap;

/// The counts and times of a step in progress. Every contender adds its own.
#[derive(Default)]
pub(super) struct Tally {
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    /// The plain counts; the other fields are measured below.
    step: ContendStep,
    /// Grants that went to a different contender than the previous one.
    hand_offs: u64,
    /// Grants of a key that its holder had not released yet: the lock had expired.
    overlaps: u64,
    /// Contenders that have asked and do not hold the lock yet.
    waiting: u64,
    acquire: Timings,
    ask: Timings,
    held: Timings,
    write: Timings,
    release: Timings,
    hand_off: Timings,
    keys: HashMap<u64, Key>,
    arrived: Vec<Arrived>,
}

#[derive(Default)]
struct Key {
    waiting: u32,
    last_holder: Option<u32>,
    /// When the last release was sent, if a contender waited then and ever since.
    let_go_ns: Option<u64>,
    is_held: bool,
}

/// The most arrivals that fairness is computed from, in the order of their ends: more would
/// cost more memory than everything else together.
const REMEMBERED_MAX: usize = 1_000_000;

/// A finished hold: when each part of it began.
pub(super) struct Held {
    pub(super) granted_ns: u64,
    pub(super) writing_ns: u64,
    pub(super) releasing_ns: u64,
    pub(super) released_ns: u64,
}

impl Tally {
    pub(super) fn arrives(&self) {
        self.counts.lock().step.arrivals += 1;
    }

    pub(super) fn asks(&self, due: Due) {
        let mut counts = self.counts.lock();
        counts.step.asked += 1;
        counts.waiting += 1;
        counts.keys.entry(due.key).or_default().waiting += 1;
    }

    pub(super) fn granted(&self, due: Due, contender: u32, asked_ns: u64, at_ns: u64) {
        let mut counts = self.counts.lock();
        counts.step.acquisitions += 1;
        counts.acquire.record(due.intended_ns, at_ns);
        counts.ask.record(asked_ns, at_ns);
        let key = counts.waits_no_more(due.key);
        let let_go_ns = key.let_go_ns.take();
        let before = key.last_holder.replace(contender);
        let overlaps = std::mem::replace(&mut key.is_held, true);
        counts.overlaps += u64::from(overlaps);
        counts.hand_offs += u64::from(before.is_some_and(|before| before != contender));
        if let Some(let_go_ns) = let_go_ns {
            counts.hand_off.record(let_go_ns, at_ns);
        }
        counts.remember(due, Some(contender), at_ns, ArrivalEnd::Granted);
    }

    /// Records that a contender asked and its wait ended without a grant.
    pub(super) fn not_granted(&self, due: Due, contender: u32, at_ns: u64, end: ArrivalEnd) {
        let mut counts = self.counts.lock();
        let key = counts.waits_no_more(due.key);
        if key.waiting == 0 {
            // The next holder did not wait for that release.
            key.let_go_ns = None;
        }
        counts.remember(due, Some(contender), at_ns, end);
    }

    /// Records the end of an arrival that no contender asked for.
    pub(super) fn never_asked(&self, due: Due, at_ns: u64, end: ArrivalEnd) {
        self.counts.lock().remember(due, None, at_ns, end);
    }

    /// Records a release before it is sent, because the next grant may be seen before its
    /// answer. A contender whose lock went to another in the meantime hands nothing over.
    pub(super) fn lets_go(&self, key: u64, contender: u32, at_ns: u64) {
        let mut counts = self.counts.lock();
        let key = counts.keys.entry(key).or_default();
        if key.last_holder == Some(contender) {
            key.let_go_ns = (key.waiting > 0).then_some(at_ns);
            key.is_held = false;
        }
    }

    /// Returns whether two contenders held a key at the same time, so that turns mean nothing.
    pub(super) fn holds_overlapped(&self) -> bool {
        self.counts.lock().overlaps > 0
    }

    pub(super) fn held(&self, held: &Held) {
        let mut counts = self.counts.lock();
        counts.held.record(held.granted_ns, held.released_ns);
        counts.write.record(held.writing_ns, held.releasing_ns);
        counts.release.record(held.releasing_ns, held.released_ns);
    }

    pub(super) fn acquisitions(&self) -> u64 {
        self.counts.lock().step.acquisitions
    }

    pub(super) fn waiting(&self) -> u64 {
        self.counts.lock().waiting
    }

    /// Returns all counts and times of a step with this duration.
    pub(super) fn step(&self, lasted_ns: u64) -> ContendStep {
        let counts = self.counts.lock();
        let seconds = (lasted_ns as f64 / 1e9).max(f64::EPSILON);
        ContendStep {
            lasted_ms: lasted_ns / 1_000_000,
            acquire: counts.acquire.latency(),
            ask: counts.ask.latency(),
            held: counts.held.latency(),
            write: counts.write.latency(),
            release: counts.release.latency(),
            hand_off: counts.hand_off.latency(),
            hand_offs_per_s: counts.hand_offs as f64 / seconds,
            throughput_per_s: counts.step.acquisitions as f64 / seconds,
            fairness: fairness(&counts.arrived),
            ..counts.step.clone()
        }
    }
}

impl Counts {
    fn waits_no_more(&mut self, key: u64) -> &mut Key {
        self.waiting -= 1;
        let key = self.keys.entry(key).or_default();
        key.waiting -= 1;
        key
    }

    fn remember(&mut self, due: Due, contender: Option<u32>, ended_ns: u64, end: ArrivalEnd) {
        match end {
            // An arrival that never waited cannot be overtaken.
            ArrivalEnd::TurnedAway => {
                self.step.turned_away += 1;
                return;
            }
            ArrivalEnd::TimedOut => self.step.timeouts += 1,
            ArrivalEnd::StillWaiting => self.step.still_waiting += 1,
            ArrivalEnd::Granted | ArrivalEnd::Failed => {}
        }
        if self.arrived.len() < REMEMBERED_MAX {
            self.arrived.push(Arrived {
                key: due.key,
                contender,
                intended_ns: due.intended_ns,
                ended_ns,
                end,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn due(ms: u64) -> Due {
        Due {
            intended_ns: ms * MS,
            key: 0,
        }
    }

    #[test]
    fn a_hand_off_counts_from_the_release_while_somebody_waits() {
        let tally = Tally::default();
        for ms in [0, 1, 2] {
            tally.arrives();
            tally.asks(due(ms));
        }
        tally.granted(due(0), 0, 0, 10 * MS);
        tally.lets_go(0, 0, 20 * MS);
        tally.granted(due(1), 1, MS, 23 * MS);
        tally.not_granted(due(2), 2, 30 * MS, ArrivalEnd::TimedOut);
        // Nobody waits now, so the next grant is not a hand-off, and goes to the same contender.
        tally.lets_go(0, 1, 40 * MS);
        tally.asks(due(50));
        tally.granted(due(50), 1, 50 * MS, 51 * MS);
        let step = tally.step(1_000 * MS);
        assert_eq!(step.hand_off.count, 1);
        assert_eq!(step.hand_off.max_us / 10, 300);
        assert_eq!(step.hand_offs_per_s, 1.0);
        assert_eq!((step.acquisitions, step.timeouts), (3, 1));
        assert_eq!(tally.waiting(), 0);
        assert!(!tally.holds_overlapped());
    }

    #[test]
    fn time_in_which_nobody_waits_is_no_hand_off() {
        let tally = Tally::default();
        tally.asks(due(0));
        tally.granted(due(0), 0, 0, MS);
        tally.asks(due(2));
        tally.lets_go(0, 0, 3 * MS);
        tally.not_granted(due(2), 1, 4 * MS, ArrivalEnd::TimedOut);
        tally.asks(due(9_000));
        tally.granted(due(9_000), 2, 9_000 * MS, 9_001 * MS);
        assert_eq!(tally.step(10_000 * MS).hand_off.count, 0);
    }

    #[test]
    fn whose_lock_ran_out_hands_nothing_over() {
        let tally = Tally::default();
        for ms in [0, 1, 2] {
            tally.asks(due(ms));
        }
        tally.granted(due(0), 0, 0, 10 * MS);
        tally.granted(due(1), 1, MS, 20 * MS);
        tally.lets_go(0, 0, 25 * MS);
        tally.granted(due(2), 2, 2 * MS, 30 * MS);
        assert_eq!(tally.step(1_000 * MS).hand_off.count, 0);
        assert!(tally.holds_overlapped());
    }

    #[test]
    fn who_never_asked_takes_nothing_off_the_retries() {
        let tally = Tally::default();
        tally.asks(due(0));
        tally.granted(due(0), 0, 0, MS);
        tally.asks(due(1));
        tally.not_granted(due(1), 1, 2 * MS, ArrivalEnd::Failed);
        for ms in 2..9 {
            tally.never_asked(due(ms), 20 * MS, ArrivalEnd::TimedOut);
        }
        let mut step = tally.step(1_000 * MS);
        step.attempts = 5;
        assert_eq!((step.asked, step.timeouts), (2, 7));
        assert_eq!(step.retries_per_acquisition(), 3.0);
    }

    #[test]
    fn waits_count_from_the_intended_arrival() {
        let tally = Tally::default();
        tally.asks(due(100));
        tally.granted(due(100), 0, 900 * MS, 1_000 * MS);
        let step = tally.step(1_000 * MS);
        assert!(step.acquire.max_us.abs_diff(900_000) < 1_000);
        assert!(step.ask.max_us.abs_diff(100_000) < 100);
        assert_eq!(step.fairness.worst_wait_us, 900_000);
    }
}
