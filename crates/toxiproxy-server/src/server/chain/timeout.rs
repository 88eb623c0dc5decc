use super::*;

/// A toxic that drops data, and closes once none has come for some time. With a time of
/// zero it never does; but a stream with a hole in it is useless, so it closes when the
/// toxic is removed.
pub struct Timeout {
    /// Zero means never.
    pub after: Duration,
    pub quiet_since: Instant,
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
        if closes_at > now {
            Step::WaitUntil(closes_at)
        } else {
            Step::Close
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
