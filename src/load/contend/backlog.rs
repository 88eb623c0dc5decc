use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;

/// Somebody who wants a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) intended_ns: u64,
    /// The number of the key.
    pub(super) key: u64,
}

/// Arrivals on their way to a contender, first come, first served.
///
/// Whoever finds a contender free is on the way to it for a moment only; the
/// others stand in the backlog, which has a bound. Offering never waits for
/// anybody: that is what keeps arrivals at their rate, whatever becomes of
/// those before.
pub(super) struct Backlog {
    state: Mutex<State>,
    /// A permit for each arrival that nobody has taken; closed with the backlog.
    offered: Semaphore,
    capacity: usize,
}

struct State {
    due: VecDeque<Due>,
    /// Contenders that have nothing to do.
    free: usize,
}

impl Backlog {
    /// All contenders are free at first.
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

    /// False where no contender is free and the backlog is full.
    pub(super) fn offer(&self, due: Due) -> bool {
        let mut state = self.state();
        if state.due.len() >= state.free.saturating_add(self.capacity) {
            return false;
        }
        state.due.push_back(due);
        drop(state);
        self.offered.add_permits(1);
        true
    }

    /// The next arrival, for a contender that is free; `None` once it is closed.
    /// The contender is busy then, until it says [`Backlog::free_again`].
    pub(super) async fn take(&self) -> Option<Due> {
        loop {
            self.offered.acquire().await.ok()?.forget();
            let mut state = self.state();
            // Nothing is there where it was given up just before.
            if let Some(due) = state.due.pop_front() {
                state.free -= 1;
                return Some(due);
            }
        }
    }

    pub(super) fn free_again(&self) {
        self.state().free += 1;
    }

    /// How many there are for whom no contender is free.
    pub(super) fn length(&self) -> u64 {
        let state = self.state();
        state.due.len().saturating_sub(state.free) as u64
    }

    /// Takes out all who arrived before this moment: they give up.
    pub(super) fn give_up_before(&self, intended_ns: u64) -> Vec<Due> {
        let mut state = self.state();
        let late = |due: &Due| due.intended_ns < intended_ns;
        let count = state.due.iter().take_while(|due| late(due)).count();
        let given_up = state.due.drain(..count).collect();
        drop(state);
        // A contender that was faster finds nothing and looks again.
        self.offered.forget_permits(count);
        given_up
    }

    /// Nobody takes anything any more; those who are left.
    pub(super) fn close(&self) -> Vec<Due> {
        self.offered.close();
        self.state().due.drain(..).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
