use super::*;

/// A toxic that resets both sides some time after it was added to the connection. Until
/// then it drops everything, including the end of the stream, which would close the
/// connection normally.
pub struct ResetPeer {
    pub holds_since: Instant,
    pub after: Duration,
}

impl Machine for ResetPeer {
    fn step(&mut self, input: &mut Queue, _output: &mut Queue, now: Instant) -> Step {
        while input.pop().is_some() {}
        let resets_at = self.holds_since + self.after;
        if resets_at > now {
            Step::WaitUntil(resets_at)
        } else {
            Step::Reset
        }
    }

    fn change(&mut self, kind: ToxicKind, now: Instant) {
        if let ToxicKind::ResetPeer { timeout_ms } = kind {
            self.holds_since = now;
            self.after = Duration::from_millis(timeout_ms);
        }
    }
}
