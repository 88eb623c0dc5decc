use super::LockBackend;
use std::sync::Arc;

/// A try or a wait whose answer is not known yet. If it is dropped in that state, it is
/// undone in the background.
pub(super) struct InFlight {
    backend: Arc<dyn LockBackend>,
    key: String,
    owner: String,
    settled: bool,
}

impl InFlight {
    pub(super) fn new(backend: Arc<dyn LockBackend>, key: &str) -> InFlight {
        InFlight {
            owner: backend.new_owner(),
            backend,
            key: key.to_owned(),
            settled: false,
        }
    }

    pub(super) fn owner(&self) -> &str {
        &self.owner
    }

    /// Notes that the answer came, and leaves the consequences to the caller.
    pub(super) fn settle(mut self) -> (String, String) {
        self.settled = true;
        let key = std::mem::take(&mut self.key);
        (key, std::mem::take(&mut self.owner))
    }

    /// Undoes it now. If that fails too, the TTL frees the lock.
    pub(super) async fn undo(mut self) {
        let _unknown = self.backend.abandon(&self.key, &self.owner).await;
        self.settled = true;
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if !self.settled {
            let backend = self.backend.clone();
            let key = std::mem::take(&mut self.key);
            let owner = std::mem::take(&mut self.owner);
            self.backend.env().in_background(async move {
                let _unknown = backend.abandon(&key, &owner).await;
            });
        }
    }
}
