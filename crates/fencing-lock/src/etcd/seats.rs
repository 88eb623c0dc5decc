use crate::Env;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use uuid::Uuid;

/// The names of this process's places in lines, which are used again and again.
///
/// A store remembers every key that it ever had until somebody compacts it, and a look at
/// all keys with one prefix passes over all of those as well. With a new name for every
/// attempt, a lock would become slower with each grant.
pub(super) struct Seats {
    /// Distinguishes this process from every other.
    process: Uuid,
    pool: Mutex<Pool>,
}

#[derive(Default)]
struct Pool {
    free: BTreeSet<u32>,
    made: u32,
}

/// One of these names, used by one attempt at a time.
pub(super) struct Seat {
    seats: Arc<Seats>,
    number: u32,
    is_retired: AtomicBool,
}

impl Seats {
    pub(super) fn new(env: &Env) -> Arc<Seats> {
        Arc::new(Seats {
            process: env.uuid(),
            pool: Mutex::default(),
        })
    }

    /// Takes the lowest number that is free, so that there are only as many names as
    /// there ever were attempts at once.
    pub(super) fn take(self: &Arc<Self>) -> Seat {
        let mut pool = self.pool.lock().expect("nobody panics while holding it");
        let number = pool.free.pop_first().unwrap_or_else(|| {
            pool.made += 1;
            pool.made
        });
        Seat {
            seats: self.clone(),
            number,
            is_retired: AtomicBool::new(false),
        }
    }
}

impl Seat {
    pub(super) fn name(&self) -> String {
        format!("{}-{}", self.seats.process, self.number)
    }

    /// Keeps the name from being used again, because it is unknown whether its place is
    /// free.
    pub(super) fn retire(&self) {
        self.is_retired.store(true, Ordering::Relaxed);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if !self.is_retired.load(Ordering::Relaxed) {
            let pool = self.seats.pool.lock();
            let mut pool = pool.expect("nobody panics while holding it");
            pool.free.insert(self.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_used_again_when_it_is_free_and_never_by_two() {
        let seats = Seats::new(&Env::default());
        let (first, second) = (seats.take(), seats.take());
        assert_ne!(first.name(), second.name());
        let name = first.name();
        drop(first);
        let again = seats.take();
        assert_eq!(again.name(), name);
        again.retire();
        drop(again);
        assert_ne!(seats.take().name(), name);
        assert_ne!(
            Seats::new(&Env::default()).take().name(),
            name,
            "another process"
        );
    }
}
