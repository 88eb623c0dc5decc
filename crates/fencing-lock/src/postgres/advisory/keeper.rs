use super::session::Session;
use super::{CONFIRM, text};
use crate::watchdog::about_a_third;
use crate::{Belief, LockProblem, LostReason};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_postgres::types::Type;

/// What a holder may believe of its session, and for how long.
pub(super) struct Keeper {
    pub(super) session: Arc<Session>,
    pub(super) owner: String,
    pub(super) ttl: Duration,
    /// Whether the session has to serve nobody else.
    pub(super) checks: bool,
    pub(super) belief: watch::Sender<Belief>,
}

impl Keeper {
    /// Asks again and again whether the session is still there, for as long as it is
    /// polled, and tells the holder when it is not.
    pub(super) async fn keep(self) {
        let ended = self.session.ended();
        let soon = (self.ttl / 20).max(Duration::from_millis(1));
        let mut next = Instant::now() + about_a_third(self.session.env(), self.ttl);
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
                confirmed = confirm(&self.session, &self.owner, self.checks) => confirmed,
            };
            next = match confirmed {
                Ok(true) => {
                    let mut is_late = false;
                    self.belief.send_modify(|belief| {
                        is_late = belief.prolong(sent_at + self.ttl).is_err();
                    });
                    if is_late {
                        return;
                    }
                    sent_at + about_a_third(self.session.env(), self.ttl)
                }
                Ok(false) => return self.lost(),
                Err(_) => Instant::now() + soon,
            };
        }
    }

    fn lost(&self) {
        self.belief.send_modify(|belief| {
            belief.lost.get_or_insert(LostReason::SessionOver);
        });
    }
}

/// Returns whether the session still serves this owner.
pub(super) async fn confirm(
    session: &Session,
    owner: &str,
    checks: bool,
) -> Result<bool, LockProblem> {
    let parameters = [text(&owner), (&checks as _, Type::BOOL)];
    let answer = session.ask(CONFIRM, &parameters).await?;
    let answer = answer.and_then(|row| row.try_get(0).ok());
    answer.ok_or_else(|| LockProblem::BadAnswer("no yes and no no".to_owned()))
}
