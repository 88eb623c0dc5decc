//! What a member does with a request: into the log, or to the leader.

use crate::Etcd;
use crate::peer::{Command, Deed};
use crate::state::{Answered, LeaseNow};
use crate::status::Status;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

/// A member gives up then: five seconds and two elections.
const GIVE_UP_AFTER: Duration = Duration::from_secs(7);
/// What can be asked twice is asked again after this.
const ASK_AGAIN: Duration = Duration::from_millis(500);
/// Looks at the leader that a stream survives without one.
const LOOKS_WITHOUT_LEADER: u32 = 3;
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Etcd {
    /// Has the cluster carry out a command, and returns what came of it here.
    pub(crate) async fn carry_out(&self, deed: Option<Deed>) -> Answered {
        let give_up_at = Instant::now() + GIVE_UP_AFTER;
        let id = self.change(|state| state.next_number());
        loop {
            let rings = self.bell.notified();
            let (waiter, carried_out) = oneshot::channel();
            let deed = deed.clone();
            if self.change(|state| state.propose(Command { id, deed }, waiter)) {
                let answer = timeout_at(give_up_at, carried_out).await;
                return match answer {
                    Ok(Ok(answer)) => answer,
                    Ok(Err(_)) | Err(_) => Err(Status::too_slow()),
                };
            }
            let waited = timeout_at(give_up_at, rings).await;
            waited.map_err(|_| Status::too_slow())?;
        }
    }

    /// Returns when this member knows everything that was committed before.
    pub(crate) async fn confirm(&self) -> Result<(), Status> {
        let give_up_at = Instant::now() + GIVE_UP_AFTER;
        let id = self.change(|state| state.next_number());
        while Instant::now() < give_up_at {
            let ask_again_at = give_up_at.min(Instant::now() + ASK_AGAIN);
            let rings = self.bell.notified();
            let (waiter, carried_out) = oneshot::channel();
            // Under one id: an answer to an earlier time counts, however late it is.
            let command = Command { id, deed: None };
            if self.change(|state| state.propose(command, waiter)) {
                if let Ok(Ok(answer)) = timeout_at(ask_again_at, carried_out).await {
                    return answer.map(drop);
                }
                sleep_until(ask_again_at).await;
            } else {
                let _or_nothing_happens = timeout_at(ask_again_at, rings).await;
            }
        }
        Err(Status::too_slow())
    }

    /// Lets a lease begin anew; returns its TTL, or 0 if there is no such lease. A leader makes
    /// sure first that it still is one.
    pub(crate) async fn renew(&self, lease: i64) -> Result<i64, Status> {
        if self.leads() && (self.confirm().await.is_err() || !self.leads()) {
            return Err(Status::not_primary());
        }
        let left_s = self.lease_left(lease, true).await?;
        Ok(left_s.unwrap_or(0))
    }

    /// Returns the seconds that are left of a lease, by the clock of the leader; None if there is
    /// no such lease. `renew` lets it begin anew.
    pub(crate) async fn lease_left(&self, lease: i64, renew: bool) -> Result<Option<i64>, Status> {
        let give_up_at = Instant::now() + GIVE_UP_AFTER;
        // However late the leader answers, it counts.
        let mut answers = FuturesUnordered::new();
        while Instant::now() < give_up_at {
            let rings = self.bell.notified();
            let asked = match self.change(|state| state.lease(lease, renew)) {
                LeaseNow::Is(left_s) => return Ok(left_s),
                LeaseNow::LeaderSays(says) => {
                    answers.push(says);
                    true
                }
                LeaseNow::Later => false,
            };
            tokio::select! {
                biased;
                Some(Ok(left_s)) = answers.next() => return Ok(left_s),
                () = rings, if !asked => {}
                () = sleep(ASK_AGAIN) => {}
            }
        }
        Err(Status::too_slow())
    }

    /// Refuses what needs a leader, where nobody leads.
    pub(crate) fn check_leader(&self, is_needed: bool) -> Result<(), Status> {
        match is_needed && self.state.lock().raft.leader.is_none() {
            true => Err(Status::no_leader()),
            false => Ok(()),
        }
    }

    /// Returns when nobody has led for some time, if that matters.
    pub(crate) async fn leaderless(&self, matters: bool) -> Status {
        let mut looks = 0;
        while looks < LOOKS_WITHOUT_LEADER {
            sleep(LOOK_EVERY).await;
            looks = match self.check_leader(matters) {
                Ok(()) => 0,
                Err(_) => looks + 1,
            };
        }
        Status::no_leader()
    }
}
