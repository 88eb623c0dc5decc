use crate::{Belief, LostReason};
use tokio::sync::watch;
use tokio::time::Instant;

/// A belief that many leases share: that of a session at a lock service.
pub(super) struct SharedBelief(watch::Sender<Belief>);

impl SharedBelief {
    pub(super) fn until(deadline: Instant) -> SharedBelief {
        SharedBelief(watch::Sender::new(Belief::until(deadline)))
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Belief> {
        self.0.subscribe()
    }

    pub(super) fn end(&self, reason: LostReason) {
        self.0.send_if_modified(|belief| {
            let is_news = belief.lost.is_none();
            // A holder that learned of the deadline first keeps that reason.
            let reason = belief.lost().unwrap_or(reason);
            belief.lost.get_or_insert(reason);
            is_news
        });
    }

    /// Moves the deadline, or ends the belief if the confirmation came too late.
    pub(super) fn prolong(&self, until: Instant) -> Result<(), LostReason> {
        let mut prolonged = Ok(());
        self.0
            .send_modify(|belief| prolonged = belief.prolong(until));
        prolonged.inspect_err(|reason| self.end(*reason))
    }
}

/// Databases hold one lock in a session; these services have many leases in one.
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
impl SharedBelief {
    pub(super) fn deadline(&self) -> Instant {
        self.0.borrow().deadline
    }

    pub(super) fn is_over(&self) -> bool {
        self.0.borrow().lost().is_some()
    }

    /// Completes when the belief is over, by its deadline at the latest.
    pub(super) async fn over(&self) {
        let mut changes = self.subscribe();
        loop {
            let belief = *changes.borrow_and_update();
            if belief.lost().is_some() {
                return;
            }
            // Both lead to another look at the belief.
            tokio::select! {
                biased;
                _ = changes.changed() => {}
                () = tokio::time::sleep_until(belief.deadline) => {}
            }
        }
    }
}
