use super::failure::Failure;
use super::members::Members;
use super::session::Session;
use etcd_client::{Compare, CompareOp, TxnOp};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// This process at the cluster: a session that all its locks share, and by whose mark it
/// fences off its own unanswered requests.
///
/// Requests have no order: one that was given up can be carried out at any time later (a
/// frozen member finds it in its socket when it thaws), after its key was deleted, and
/// the session would keep that leftover alive. So every request that adds a key demands
/// that the mark, a key of this session, was last written at the revision that was known
/// when the request was made. Writing the mark anew invalidates every earlier request,
/// also those that are answered: these find the new revision in their answers and ask
/// again.
pub(super) struct Presence {
    pub(super) session: Session,
    /// The highest revision at which the mark is known to be written.
    marked_at: AtomicI64,
}

impl Presence {
    pub(super) async fn open(members: Arc<Members>, ttl: Duration) -> Result<Presence, Failure> {
        let session = Session::open(members, ttl).await?;
        Ok(Presence {
            marked_at: AtomicI64::new(session.marked_at),
            session,
        })
    }

    /// Writes the mark anew: after that no earlier request of this session can add a key.
    pub(super) async fn fence_off(&self) -> Result<(), Failure> {
        let revision = self.session.write_mark().await?;
        self.mark_seen(revision);
        Ok(())
    }

    /// Returns the condition that is part of every request that adds a key.
    pub(super) fn not_fenced_off(&self) -> Compare {
        let marked_at = self.marked_at.load(Ordering::Relaxed);
        Compare::mod_revision(self.session.mark(), CompareOp::Equal, marked_at)
    }

    /// Reads the mark, for a request that was fenced off.
    pub(super) fn read_mark(&self) -> TxnOp {
        TxnOp::get(self.session.mark(), None)
    }

    pub(super) fn mark_seen(&self, revision: i64) {
        self.marked_at.fetch_max(revision, Ordering::Relaxed);
    }
}
