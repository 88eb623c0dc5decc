use super::machine::{Machine, Step};
use super::queue::Queue;
use crate::toxiproxy::ToxicKind;
use std::time::Duration;
use tokio::time::Instant;

/// Resets both sides a while after it took hold of the connection. Until then
/// it drops everything, the end of the stream too: that would be a way to close
/// in peace.
pub struct ResetPeer {
    holds_since: Instant,
    after: Duration,
}

impl ResetPeer {
    pub fn new(now: Instant) -> ResetPeer {
        ResetPeer {
            holds_since: now,
            after: Duration::ZERO,
        }
    }
}

impl Machine for ResetPeer {
    fn step(&mut self, input: &mut Queue, _output: &mut Queue, now: Instant) -> Step {
        while input.pop().is_some() {}
        let resets_at = self.holds_since + self.after;
        match resets_at > now {
            true => Step::WaitUntil(resets_at),
            false => Step::Reset,
        }
    }

    fn change(&mut self, kind: ToxicKind, now: Instant) {
        if let ToxicKind::ResetPeer { timeout_ms } = kind {
            self.holds_since = now;
            self.after = Duration::from_millis(timeout_ms);
        }
    }
}
