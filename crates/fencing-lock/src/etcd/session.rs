use super::failure::Failure;
use super::members::Members;
use super::names::session_key;
use crate::follow_through::FollowThrough;
use crate::shared_belief::SharedBelief;
use crate::task::Task;
use crate::watchdog::about_a_third;
use crate::{Belief, LostReason, RenewOutcome};
use etcd_client::{PutOptions, ResponseHeader};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

/// A lease at the cluster that is kept alive for as long as this object lives, and what
/// this process may believe about it.
///
/// Keys attached to the lease are deleted with it. The belief ends a TTL after the last
/// request was sent that the cluster answered with "still there", or as soon as the
/// cluster says that the lease is gone. The end is final.
///
/// One of these keys is the session's mark, by which a majority confirms that the lease is
/// there: a leader that was deposed and does not know it still answers keep-alives, which
/// prolong nothing (etcd issue 15247).
///
/// Once dropped, the session is not prolonged any more and expires by itself.
pub(super) struct Session {
    shared: Arc<SessionState>,
    /// The revision at which the mark was written first.
    pub(super) marked_at: i64,
    _beats: Task,
}

struct SessionState {
    members: Arc<Members>,
    lease: i64,
    mark: String,
    ttl: Duration,
    belief: SharedBelief,
}

/// The pause before a lease is revoked again because no member answered.
const PAUSE: Duration = Duration::from_millis(100);

impl Session {
    pub(super) async fn open(members: Arc<Members>, ttl: Duration) -> Result<Session, Failure> {
        let env = members.env().clone();
        members.prefer_leader().await;
        let ttl_s = whole_seconds(ttl);
        let granted = members.ask(|wire| {
            let mut lease = wire.lease.clone();
            async move {
                // A lease whose grant is not answered has no keys, and expires.
                let asked_at = Instant::now();
                Ok((asked_at, lease.grant(ttl_s, None).await?))
            }
        });
        let (asked_at, grant) = granted.await?;
        let granted_s = u64::try_from(grant.ttl()).unwrap_or(0);
        if granted_s == 0 || grant.id() == 0 {
            let text = format!("a lease {} of {} s", grant.id(), grant.ttl());
            return Err(Failure::Garbage(text));
        }
        let ttl = Duration::from_secs(granted_s);
        let shared = Arc::new(SessionState {
            members,
            lease: grant.id(),
            mark: session_key(&env),
            ttl,
            belief: SharedBelief::until(asked_at + ttl),
        });
        Ok(Session {
            marked_at: shared.write_mark().await?,
            _beats: env.spawn(beat(shared.clone(), asked_at)),
            shared,
        })
    }

    pub(super) fn lease(&self) -> i64 {
        self.shared.lease
    }

    /// Returns the TTL that the server granted.
    pub(super) fn ttl(&self) -> Duration {
        self.shared.ttl
    }

    pub(super) fn belief(&self) -> watch::Receiver<Belief> {
        self.shared.belief.subscribe()
    }

    pub(super) fn is_over(&self) -> bool {
        self.shared.belief.is_over()
    }

    /// Completes when the session is over, by its deadline at the latest.
    pub(super) async fn over(&self) {
        self.shared.belief.over().await;
    }

    /// Returns the key of the mark.
    pub(super) fn mark(&self) -> &str {
        &self.shared.mark
    }

    /// Writes the mark anew, and returns the revision at which it was written.
    pub(super) async fn write_mark(&self) -> Result<i64, Failure> {
        self.shared.write_mark().await
    }

    /// Asks the cluster to prolong the session now.
    pub(super) async fn renew(&self) -> Result<RenewOutcome, Failure> {
        match self.shared.confirm().await {
            Ok(_sent_at) => Ok(RenewOutcome::Renewed {
                until: self.shared.belief.deadline(),
            }),
            Err(Failure::LeaseGone) => Ok(RenewOutcome::Expired),
            Err(failure) => Err(failure),
        }
    }

    /// Learns from a failure whether the lease is gone.
    pub(super) fn heard(&self, failure: &Failure) {
        self.shared.heard(failure);
    }

    /// Ends the session here and at the cluster, together with all keys attached to it. A
    /// request that was given up and is carried out after that is refused with the lease.
    /// So the lease is revoked even if the caller is gone, and later if nobody answers now.
    pub(super) async fn close(&self) -> Result<(), Failure> {
        self.shared.belief.end(LostReason::SessionOver);
        let shared = self.shared.clone();
        let closing = FollowThrough::new(self.shared.members.env(), async move {
            let revoked = shared.revoke().await;
            if revoked.as_ref().is_err_and(Failure::is_of_the_member) {
                let env = shared.members.env().clone();
                env.in_background(async move { shared.revoke_later().await });
            }
            revoked
        });
        closing.await
    }
}

impl SessionState {
    async fn write_mark(&self) -> Result<i64, Failure> {
        let written = self.members.ask(|wire| {
            let (mut kv, mark) = (wire.kv.clone(), self.mark.clone());
            let options = PutOptions::new().with_lease(self.lease);
            async move { kv.put(mark, "", Some(options)).await }
        });
        let written = written.await.inspect_err(|failure| self.heard(failure))?;
        Ok(written.header().map_or(0, ResponseHeader::revision))
    }

    /// Prolongs the session, and returns the time at which the keep-alive was sent.
    async fn confirm(&self) -> Result<Instant, Failure> {
        let confirmed = self.keep_alive().await;
        let sent_at = confirmed.inspect_err(|failure| self.heard(failure))?;
        match self.belief.prolong(sent_at + self.ttl) {
            Ok(()) => Ok(sent_at),
            Err(_lost) => Err(Failure::LeaseGone),
        }
    }

    /// Keeps the lease alive, and has a majority confirm that this counts.
    ///
    /// It counts only if the leader that answered was not deposed before. So the same
    /// member is asked for the mark afterwards, which takes the leader of a majority. Both
    /// answers have to be of one term: with a member that learns of its deposition in
    /// between, a younger leader confirms the mark, and that one counts the lease's time
    /// from its own election.
    async fn keep_alive(&self) -> Result<Instant, Failure> {
        let answers = self.members.ask(|wire| {
            let (mut kv, mut lease) = (wire.kv.clone(), wire.lease.clone());
            let (mark, id) = (self.mark.as_str(), self.lease);
            self.members.requests().inc_by(2);
            async move {
                let sent_at = Instant::now();
                // Each beat has its own stream: so nothing depends on a member that may
                // freeze or fail, and every beat can go to another one.
                let (mut keeper, mut answers) = lease.keep_alive(id).await?;
                // The client library does not show the first answer.
                keeper.keep_alive().await?;
                let prolonged = answers.message().await?;
                Ok((sent_at, prolonged, kv.get(mark, None).await?))
            }
        });
        let (sent_at, prolonged, mark) = answers.await?;
        let silent = || Failure::Unanswered("the stream of keep-alives ended".to_owned());
        let prolonged = prolonged.ok_or_else(silent)?;
        if prolonged.ttl() <= 0 || mark.kvs().is_empty() {
            return Err(Failure::LeaseGone);
        }
        if term(prolonged.header()) != term(mark.header()) {
            let text = "there was an election".to_owned();
            return Err(Failure::NotDone(text));
        }
        Ok(sent_at)
    }

    /// Learns from a failure whether the lease is gone.
    fn heard(&self, failure: &Failure) {
        if *failure == Failure::LeaseGone {
            self.belief.end(LostReason::Expired);
        }
    }

    async fn revoke(&self) -> Result<(), Failure> {
        let answer = self.members.ask(|wire| {
            let (mut lease, id) = (wire.lease.clone(), self.lease);
            async move { lease.revoke(id).await }
        });
        answer.await.map(|_revoked| ())
    }

    /// Revokes the lease as soon as a member answers, unless it has expired by then.
    async fn revoke_later(&self) {
        // A request that is still under way may prolong it once more.
        let expired_at = Instant::now() + 2 * self.ttl;
        while Instant::now() < expired_at {
            sleep(PAUSE).await;
            match self.revoke().await {
                Err(failure) if failure.is_of_the_member() => {}
                _ => return,
            }
        }
    }
}

fn term(header: Option<&ResponseHeader>) -> Option<u64> {
    header.map(ResponseHeader::raft_term)
}

/// Prolongs the session until it is over.
async fn beat(shared: Arc<SessionState>, mut confirmed_at: Instant) {
    let soon = shared.ttl / 20;
    loop {
        let mut next = confirmed_at + about_a_third(shared.members.env(), shared.ttl);
        loop {
            tokio::select! {
                // What is over is not prolonged, also where both come at once.
                biased;
                () = shared.belief.over() => return,
                () = sleep_until(next) => {}
            }
            match shared.confirm().await {
                Ok(sent_at) => {
                    confirmed_at = sent_at;
                    break;
                }
                // The session may still be saved before the deadline.
                Err(_) => next = Instant::now() + soon,
            }
        }
        shared.members.prefer_leader().await;
    }
}

/// Rounds up to whole seconds, in which leases are counted: a lease that is shorter than
/// requested would be lost too early.
pub(super) fn whole_seconds(ttl: Duration) -> i64 {
    let rounded_up = ttl.as_millis().div_ceil(1_000).max(1);
    i64::try_from(rounded_up).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_never_shorter_than_what_was_asked_for() {
        let seconds = |ms| whole_seconds(Duration::from_millis(ms));
        assert_eq!([1, 999, 1_000, 1_001].map(seconds), [1, 1, 1, 2]);
        assert_eq!(whole_seconds(crate::MAX_TTL), 86_400);
    }
}
