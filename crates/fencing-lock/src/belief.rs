use thiserror::Error;
use tokio::time::Instant;

/// The time until which somebody may believe that they hold something, by their own
/// monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct Belief {
    pub deadline: Instant,
    /// Never cleared once set: the holder may already have acted on it.
    pub lost: Option<LostReason>,
}

impl Belief {
    pub(super) fn until(deadline: Instant) -> Belief {
        let lost = None;
        Belief { deadline, lost }
    }

    pub(super) fn lost(self) -> Option<LostReason> {
        let ran_out = || (Instant::now() >= self.deadline).then_some(LostReason::Deadline);
        self.lost.or_else(ran_out)
    }

    /// Moves the deadline, unless it has passed: a late confirmation restores nothing.
    pub(super) fn prolong(&mut self, until: Instant) -> Result<(), LostReason> {
        if let Some(reason) = self.lost() {
            return Err(reason);
        }
        // The answers to two confirmations may come in either order.
        self.deadline = self.deadline.max(until);
        Ok(())
    }
}

/// The way in which a holder learned that its lease is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LostReason {
    #[error("its time ran out by the holder's own clock")]
    Deadline,
    #[error("the server holds it for nobody any more")]
    Expired,
    #[error("the server holds it for somebody else")]
    Superseded,
    #[error("the session that it belonged to is over")]
    SessionOver,
}
