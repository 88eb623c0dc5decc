use super::failure::Failure;
use super::members::Members;
use crate::dlock::watchdog::about_a_third;
use crate::dlock::{Belief, LostReason};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;

/// A lease at the cluster that is kept alive for as long as this is kept, and
/// what this process may believe about it.
///
/// What is attached to the lease goes with it. The belief ends a TTL after the
/// last request that the cluster answered with "still there" was sent, or as
/// soon as it says that the lease is gone. An end is for good.
///
/// Dropped, it is not prolonged any more and runs out by itself.
pub(super) struct Session {
    shared: Arc<Shared>,
    _beats: AbortOnDropHandle<()>,
}

struct Shared {
    members: Arc<Members>,
    lease: i64,
    ttl: Duration,
    belief: watch::Sender<Belief>,
}

impl Session {
    pub(super) async fn open(members: Arc<Members>, ttl: Duration) -> Result<Session, Failure> {
        members.prefer_leader().await;
        let ttl_s = whole_seconds(ttl);
        let granted = members.ask(|wire| {
            let mut lease = wire.lease.clone();
            async move {
                // A grant that is not answered has no keys, and runs out.
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
        let shared = Arc::new(Shared {
            members,
            lease: grant.id(),
            ttl,
            belief: watch::Sender::new(Belief::until(asked_at + ttl)),
        });
        Ok(Session {
            _beats: AbortOnDropHandle::new(tokio::spawn(keep_alive(shared.clone(), asked_at))),
            shared,
        })
    }

    pub(super) fn lease(&self) -> i64 {
        self.shared.lease
    }

    /// What the server granted.
    pub(super) fn ttl(&self) -> Duration {
        self.shared.ttl
    }

    pub(super) fn belief(&self) -> watch::Receiver<Belief> {
        self.shared.belief.subscribe()
    }

    pub(super) fn deadline(&self) -> Instant {
        self.shared.belief.borrow().deadline
    }

    pub(super) fn is_over(&self) -> bool {
        self.shared.is_over()
    }

    /// Completes when the session is over, by its deadline at the latest.
    pub(super) async fn over(&self) {
        self.shared.over().await;
    }

    /// Asks the cluster to prolong it now.
    pub(super) async fn confirm(&self) -> Result<(), Failure> {
        self.shared.confirm().await.map(|_sent_at| ())
    }

    /// The cluster said that the lease is gone.
    pub(super) fn is_gone(&self) {
        self.shared.end(LostReason::Expired);
    }

    /// Ends it here, and at the cluster together with all that is attached.
    pub(super) async fn close(&self) -> Result<(), Failure> {
        self.shared.end(LostReason::SessionOver);
        let answer = self.shared.members.ask(|wire| {
            let (mut lease, id) = (wire.lease.clone(), self.shared.lease);
            async move { lease.revoke(id).await }
        });
        answer.await.map(|_revoked| ())
    }
}

impl Shared {
    fn is_over(&self) -> bool {
        self.belief.borrow().lost().is_some()
    }

    async fn over(&self) {
        let mut changes = self.belief.subscribe();
        loop {
            let belief = *changes.borrow_and_update();
            if belief.lost().is_some() {
                return;
            }
            tokio::select! {
                _ = changes.changed() => {}
                () = sleep_until(belief.deadline) => {}
            }
        }
    }

    fn end(&self, reason: LostReason) {
        self.belief.send_if_modified(|belief| {
            let is_news = belief.lost.is_none();
            // Who was told "your time ran out" is not told something else later.
            let reason = belief.lost().unwrap_or(reason);
            belief.lost.get_or_insert(reason);
            is_news
        });
    }

    /// Returns when the request that was answered had been sent.
    async fn confirm(&self) -> Result<Instant, Failure> {
        let answer = self.members.ask(|wire| {
            let (mut lease, id) = (wire.lease.clone(), self.lease);
            async move {
                let sent_at = Instant::now();
                // A stream for each beat: nothing stands on a member that may
                // freeze or go, and every beat can go to another one.
                let _stream = lease.keep_alive(id).await?;
                Ok(sent_at)
            }
        });
        let sent_at = answer.await.inspect_err(|failure| {
            if *failure == Failure::LeaseGone {
                self.end(LostReason::Expired);
            }
        })?;
        let mut prolonged = Ok(());
        self.belief
            .send_modify(|belief| prolonged = belief.prolong(sent_at + self.ttl));
        if let Err(reason) = prolonged {
            self.end(reason);
            return Err(Failure::LeaseGone);
        }
        Ok(sent_at)
    }
}

/// Until the session is over.
async fn keep_alive(shared: Arc<Shared>, mut confirmed_at: Instant) {
    let soon = shared.ttl / 20;
    loop {
        let mut next = confirmed_at + about_a_third(shared.ttl);
        loop {
            tokio::select! {
                () = shared.over() => return,
                () = sleep_until(next) => {}
            }
            match shared.confirm().await {
                Ok(sent_at) => {
                    confirmed_at = sent_at;
                    break;
                }
                // Up to the deadline it may still be saved.
                Err(_) => next = Instant::now() + soon,
            }
        }
        shared.members.prefer_leader().await;
    }
}

/// Leases are counted in seconds; a shorter one than was asked for would be
/// lost too early.
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
        assert_eq!(whole_seconds(crate::dlock::MAX_TTL), 86_400);
    }
}
