use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// The source of the tokens that tries propose to the nodes.
///
/// A proposal is a hint that makes the nodes' counters agree at once, so that one round
/// trip is enough. Safety rests on the counters alone, and any number would do. Since it
/// includes the clock, tokens also go on growing after all nodes lost their counters, as
/// far as clocks can be trusted.
#[derive(Default)]
pub(super) struct Proposals {
    /// The highest token that was proposed by us or granted to us.
    highest: AtomicU64,
}

/// Lua counts exactly up to 2^53. A clock beyond 2^52 microseconds (in the year 2112) is
/// wrong, and believing it could exhaust the counters.
const BELIEVED_MAX: u64 = 1 << 52;

impl Proposals {
    /// Returns a number above every one that this client has seen, and never the same
    /// twice.
    pub(super) fn next(&self, now: SystemTime) -> u64 {
        let since_epoch = now.duration_since(SystemTime::UNIX_EPOCH);
        let now_us = since_epoch.map_or(0, |since| since.as_micros());
        self.next_at(u64::try_from(now_us).unwrap_or(u64::MAX))
    }

    fn next_at(&self, now_us: u64) -> u64 {
        let floor = if now_us <= BELIEVED_MAX { now_us } else { 0 };
        let above = |highest: u64| (highest + 1).max(floor);
        let order = Ordering::Relaxed;
        let before = self
            .highest
            .fetch_update(order, order, |highest| Some(above(highest)));
        above(before.unwrap_or_else(|highest| highest))
    }

    pub(super) fn saw(&self, token: u64) {
        self.highest.fetch_max(token, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proposals_grow_whatever_the_clock_does() {
        let proposals = Proposals::default();
        assert_eq!(proposals.next_at(1_000), 1_000);
        assert_eq!(proposals.next_at(1_000), 1_001);
        assert_eq!(proposals.next_at(5), 1_002);
        proposals.saw(2_000);
        proposals.saw(1_500);
        assert_eq!(proposals.next_at(1_700), 2_001);
        assert_eq!(proposals.next_at(u64::MAX), 2_002, "no such time");
    }
}
