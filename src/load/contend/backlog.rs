use parking_lot::Mutex;
use std::collections::VecDeque;
use tokio::sync::Semaphore;

/// An arrival that wants a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) intended_ns: u64,
    pub(super) key: u64,
}

/// Arrivals on their way to a contender, first come, first served.
///
/// An arrival that finds a contender free is here for a moment only; the others wait in the
/// backlog, which has a bound. Offering never waits: that keeps arrivals at their rate,
/// whatever happens to earlier ones.
pub(super) struct Backlog {
    state: Mutex<State>,
    /// One permit per arrival that no contender has taken. It is closed with the backlog.
    offered: Semaphore,
    capacity: usize,
}

struct State {
    due: VecDeque<Due>,
    /// Contenders that have nothing to do.
    free: usize,
}

impl Backlog {
    /// Makes an empty backlog. All contenders are free at first.
    pub(super) fn new(contenders: u32, capacity: u32) -> Backlog {
        Backlog {
            state: Mutex::new(State {
                due: VecDeque::new(),
                free: contenders as usize,
            }),
            offered: Semaphore::new(0),
            capacity: capacity as usize,
        }
    }

    /// Adds an arrival. Returns false if no contender is free and the backlog is full.
    pub(super) fn offer(&self, due: Due) -> bool {
        let mut state = self.state.lock();
        if state.due.len() >= state.free.saturating_add(self.capacity) {
            return false;
        }
        state.due.push_back(due);
        drop(state);
        self.offered.add_permits(1);
        true
    }

    /// Waits for the next arrival, for a free contender; `None` once the backlog is closed. The
    /// contender is then busy until it calls [`Backlog::free_again`].
    pub(super) async fn take(&self) -> Option<Due> {
        loop {
            self.offered.acquire().await.ok()?.forget();
            let mut state = self.state.lock();
            // The arrival may have given up just before.
            if let Some(due) = state.due.pop_front() {
                state.free -= 1;
                return Some(due);
            }
        }
    }

    pub(super) fn free_again(&self) {
        self.state.lock().free += 1;
    }

    /// Returns the number of arrivals for which no contender is free.
    pub(super) fn length(&self) -> u64 {
        let state = self.state.lock();
        state.due.len().saturating_sub(state.free) as u64
    }

    /// Removes and returns all arrivals from before this moment: they give up.
    pub(super) fn give_up_before(&self, intended_ns: u64) -> Vec<Due> {
        let mut state = self.state.lock();
        let late = |due: &Due| due.intended_ns < intended_ns;
        let count = state.due.iter().take_while(|due| late(due)).count();
        let given_up = state.due.drain(..count).collect();
        drop(state);
        // A contender that already took a permit finds nothing and waits again.
        self.offered.forget_permits(count);
        given_up
    }

    /// Closes the backlog and returns the remaining arrivals.
    pub(super) fn close(&self) -> Vec<Due> {
        self.offered.close();
        self.state.lock().due.drain(..).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(intended_ns: u64) -> Due {
        Due {
            intended_ns,
            key: 0,
        }
    }

    #[tokio::test]
    async fn who_finds_nobody_free_and_the_backlog_full_is_turned_away() {
        let backlog = Backlog::new(1, 2);
        let offered = [1, 2, 3, 4].map(|ns| backlog.offer(due(ns)));
        assert_eq!(offered, [true, true, true, false]);
        assert_eq!(backlog.length(), 2);
        assert_eq!(backlog.take().await, Some(due(1)));
        assert_eq!(backlog.length(), 2, "the one contender is busy");
        assert!(!backlog.offer(due(5)));
        backlog.free_again();
        assert_eq!(backlog.length(), 1);
        assert!(backlog.offer(due(6)));
        assert_eq!(backlog.close(), [due(2), due(3), due(6)]);
        assert_eq!(backlog.take().await, None);
    }

    #[tokio::test]
    async fn without_a_backlog_only_free_contenders_are_found() {
        let backlog = Backlog::new(2, 0);
        let offered = [1, 2, 3].map(|ns| backlog.offer(due(ns)));
        assert_eq!(offered, [true, true, false]);
        assert_eq!(backlog.length(), 0);
    }

    #[tokio::test]
    async fn who_has_waited_too_long_is_taken_out_and_never_taken() {
        let backlog = Backlog::new(1, 10);
        for ns in 1..=4 {
            backlog.offer(due(ns));
        }
        assert_eq!(backlog.give_up_before(3), [due(1), due(2)]);
        assert_eq!(backlog.take().await, Some(due(3)));
        backlog.free_again();
        assert_eq!(backlog.take().await, Some(due(4)));
        backlog.free_again();
        assert_eq!(backlog.close(), []);
    }
}
