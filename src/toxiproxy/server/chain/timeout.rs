use super::machine::{Machine, Step};
use super::queue::{Item, Queue};
use crate::toxiproxy::ToxicKind;
use std::time::Duration;
use tokio::time::Instant;

/// Drops data, and closes once none has come for a while. Without a while it
/// never does; but a stream with a hole in it is of no use to anybody, so it
/// closes when the toxic is removed.
pub struct Timeout {
    /// Zero is for ever.
    after: Duration,
    quiet_since: Instant,
}

impl Timeout {
    pub fn new(now: Instant) -> Timeout {
        Timeout {
            after: Duration::ZERO,
            quiet_since: now,
        }
    }
}

impl Machine for Timeout {
    fn step(&mut self, input: &mut Queue, _output: &mut Queue, now: Instant) -> Step {
        while let Some(item) = input.pop() {
            match item {
                Item::Data(_) => self.quiet_since = now,
                Item::End => return Step::Close,
            }
        }
        if self.after.is_zero() {
            return Step::Wait;
        }
        let closes_at = self.quiet_since + self.after;
        match closes_at > now {
            true => Step::WaitUntil(closes_at),
            false => Step::Close,
        }
    }

    fn change(&mut self, kind: ToxicKind, now: Instant) {
        if let ToxicKind::Timeout { timeout_ms } = kind {
            self.after = Duration::from_millis(timeout_ms);
            self.quiet_since = now;
        }
    }

    fn closes_when_removed(&self) -> bool {
        true
    }
}
