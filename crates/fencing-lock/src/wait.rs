use std::sync::Mutex;
use std::time::Duration;

/// The random sleep of a waiter between two tries, so that waiters that lost together do
/// not come back together.
pub(super) struct JitterWait {
    random: Mutex<fastrand::Rng>,
}

const SHORTEST_MS: u64 = 5;
const LONGEST_MS: u64 = 25;

impl JitterWait {
    /// The same seed gives the same sequence, so a run can be repeated.
    pub(super) fn new(seed: u64) -> JitterWait {
        JitterWait {
            random: Mutex::new(fastrand::Rng::with_seed(seed)),
        }
    }

    /// Returns the next sleep. `retry_in` is the time until the present hold expires, if
    /// known.
    pub(super) fn next(&self, retry_in: Option<Duration>) -> Duration {
        let mut random = self.random.lock().expect("no user panics while drawing");
        let jitter = Duration::from_millis(random.u64(SHORTEST_MS..=LONGEST_MS));
        // A hold that ends at this moment still gets a millisecond: without it, a waiter
        // would spin as fast as the server answers.
        retry_in.map_or(jitter, |retry_in| {
            jitter.min(retry_in).max(Duration::from_millis(1))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_sequence_within_the_bounds() {
        let waits = |seed| {
            let wait = JitterWait::new(seed);
            (0..100).map(|_| wait.next(None)).collect::<Vec<_>>()
        };
        assert_eq!(waits(7), waits(7));
        assert_ne!(waits(7), waits(8));
        for wait in waits(7) {
            assert!((SHORTEST_MS..=LONGEST_MS).contains(&(wait.as_millis() as u64)));
        }
    }

    #[test]
    fn nobody_sleeps_past_the_end_of_the_present_hold() {
        let wait = JitterWait::new(1);
        assert_eq!(
            wait.next(Some(Duration::from_millis(2))),
            Duration::from_millis(2)
        );
        assert_eq!(wait.next(Some(Duration::ZERO)), Duration::from_millis(1));
        assert!(wait.next(Some(Duration::from_secs(60))) <= Duration::from_millis(LONGEST_MS));
    }
}
