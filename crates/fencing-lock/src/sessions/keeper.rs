use super::pool::Session;
use super::{SessionServer, Wanted};
use crate::LostReason;
use crate::shared_belief::SharedBelief;
use crate::watchdog::about_a_third;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// What a holder may believe of its session, and for how long.
pub(super) struct Keeper<S: SessionServer> {
    pub(super) session: Arc<Session<S>>,
    pub(super) key: String,
    pub(super) owner: String,
    pub(super) ttl: Duration,
    pub(super) belief: SharedBelief,
}

impl<S: SessionServer> Keeper<S> {
    /// Asks again and again whether the session is still there, for as long as it is
    /// polled, and tells the holder when it is not. A server that ends silent sessions
    /// hears of this one often enough.
    pub(super) async fn keep(self) {
        let ended = self.session.ended();
        let (env, key, owner) = (self.session.env(), &*self.key, &*self.owner);
        let often = self.ttl.min(self.session.silent_max());
        let soon = (often / 20).max(Duration::from_millis(1));
        let mut next = Instant::now() + about_a_third(env, often);
        loop {
            tokio::select! {
                biased;
                () = ended.cancelled() => return self.lost(),
                () = sleep_until(next) => {}
            }
            let sent_at = Instant::now();
            let confirmed = tokio::select! {
                biased;
                () = ended.cancelled() => return self.lost(),
                confirmed = self.session.confirm(Wanted { key, owner }) => confirmed,
            };
            next = match confirmed {
                Ok(true) => {
                    if self.belief.prolong(sent_at + self.ttl).is_err() {
                        return;
                    }
                    sent_at + about_a_third(env, often)
                }
                Ok(false) => return self.lost(),
                Err(_) => Instant::now() + soon,
            };
        }
    }

    fn lost(&self) {
        self.belief.end(LostReason::SessionOver);
    }
}
