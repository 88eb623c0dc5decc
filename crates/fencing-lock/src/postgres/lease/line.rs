use super::PostgresLeaseBackend;
use crate::wakes::granted_when_freed;
use crate::{Ask, Attempt, Grant, LastWord, LockBackend, LockError, LockProblem, WaitLine};
use async_trait::async_trait;

/// The channel on which releases are announced, with the key as the text.
const FREED: &str = "fencing_lock_freed";

impl PostgresLeaseBackend {
    /// A release is announced to every process.
    async fn try_until_granted(&self, ask: Ask<'_>, last: &LastWord) -> Result<Grant, LockProblem> {
        // If nobody holds the lock, this is enough.
        if let Attempt::Granted(grant) = self.try_once(ask).await? {
            return Ok(grant);
        }
        last.is_busy();
        let expect = || async {
            let open = self.link.open().await?;
            self.link.listen(&open, FREED).await?;
            Ok::<_, LockProblem>(open.wakes.expect(ask.key).ok())
        };
        granted_when_freed(last, || self.try_once(ask), expect).await
    }
}

#[async_trait]
impl WaitLine for PostgresLeaseBackend {
    async fn wait(&self, ask: Ask<'_>, last: &LastWord) -> Result<Grant, LockError> {
        let granted = self.try_until_granted(ask, last).await;
        granted.map_err(|problem| self.error(ask.key, problem))
    }
}
