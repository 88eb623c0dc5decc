use super::LockBackend;
use std::sync::Arc;
use uuid::Uuid;

/// A try or a wait whose answer is not known yet. Dropped like that, it undoes
/// itself in the background.
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

    /// The answer came, and somebody else takes care of what it means.
    pub(super) fn settle(mut self) -> (String, String) {
        self.settled = true;
        let key = std::mem::take(&mut self.key);
        (key, std::mem::take(&mut self.owner))
    }

    /// Undoes it here and now. If that fails too, the TTL frees the lock.
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
            in_background(async move {
                let _unknown = backend.abandon(&key, &owner).await;
            });
        }
    }
}

pub(super) fn new_owner() -> String {
    Uuid::new_v4().to_string()
}

/// Best effort, for those who cannot wait: a drop. The backend's own time
/// limits end the task; without a runtime, the TTL has to do.
pub(super) fn in_background(task: impl Future<Output = ()> + Send + 'static) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(task);
    }
}
