use super::failure::Failure;
use super::members::Members;
use super::names::session_key;
use super::session::Session;
use etcd_client::{Compare, CompareOp, PutOptions, TxnOp};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// This process at the cluster: a session that all its locks share, and a mark
/// by which it fences off its own requests of which no answer came.
///
/// Requests have no order: one that was given up can be carried out at any time
/// later (a frozen member finds it in its socket when it thaws), after its key
/// was deleted, and the session would keep that ghost alive. So everything that
/// adds a key demands that the mark, a key of this session, was last written at
/// the revision that was known when the request was made. Writing the mark anew
/// takes that ground from under every earlier request, also under those that
/// are answered: these find the new revision in their answers and ask again.
pub(super) struct Presence {
    pub(super) session: Session,
    members: Arc<Members>,
    mark_key: String,
    /// The highest revision at which the mark is known to be written.
    mark: AtomicI64,
}

impl Presence {
    pub(super) async fn open(members: Arc<Members>, ttl: Duration) -> Result<Presence, Failure> {
        let session = Session::open(members.clone(), ttl).await?;
        let presence = Presence {
            session,
            members,
            mark_key: session_key(),
            mark: AtomicI64::new(0),
        };
        presence.fence_off().await?;
        Ok(presence)
    }

    /// From here on no earlier request of this session can add a key.
    pub(super) async fn fence_off(&self) -> Result<(), Failure> {
        let answer = self.members.ask(|wire| {
            let (mut kv, key) = (wire.kv.clone(), self.mark_key.clone());
            let options = PutOptions::new().with_lease(self.session.lease());
            async move { kv.put(key, "", Some(options)).await }
        });
        let answer = answer.await.inspect_err(|failure| self.heard(failure))?;
        if let Some(header) = answer.header() {
            self.mark_seen(header.revision());
        }
        Ok(())
    }

    /// Part of every request that adds a key.
    pub(super) fn not_fenced_off(&self) -> Compare {
        let mark = self.mark.load(Ordering::Relaxed);
        Compare::mod_revision(self.mark_key.as_str(), CompareOp::Equal, mark)
    }

    /// Reads the mark, for those who were fenced off.
    pub(super) fn read_mark(&self) -> TxnOp {
        TxnOp::get(self.mark_key.as_str(), None)
    }

    pub(super) fn mark_seen(&self, revision: i64) {
        self.mark.fetch_max(revision, Ordering::Relaxed);
    }

    /// Learns from a failure whether the session is over.
    pub(super) fn heard(&self, failure: &Failure) {
        if *failure == Failure::LeaseGone {
            self.session.is_gone();
        }
    }
}
