use super::PostgresLeaseBackend;
use crate::wakes::Wake;
use crate::{Ask, Attempt, Grant, LastWord, LockBackend, LockError, LockProblem, WaitLine};
use async_trait::async_trait;
use std::time::Duration;
use tokio::time::timeout;

/// The channel on which releases are announced, with the key as the text.
const FREED: &str = "fencing_lock_freed";
/// After this time nobody relies on an announcement any more: a pooler in between may keep
/// them to itself.
const RETRY_IN_MAX: Duration = Duration::from_secs(5);

impl PostgresLeaseBackend {
    /// A release is announced to every process, and in each of them one waiter tries again.
    async fn try_until_granted(&self, ask: Ask<'_>, last: &LastWord) -> Result<Grant, LockProblem> {
        // If nobody holds the lock, this is enough.
        if let Attempt::Granted(grant) = self.try_once(ask).await? {
            return Ok(grant);
        }
        last.is_busy();
        let mut woken: Option<Wake> = None;
        loop {
            // Listen, then try, then wait: in any other order a release can come in
            // between, and nobody learns of it.
            let open = self.link.open().await?;
            self.link.listen(&open, FREED).await?;
            let Ok(mut freed) = open.wakes.expect(ask.key) else {
                continue;
            };
            let attempt = self.try_once(ask).await?;
            // If we are cancelled before the answer, the wake-up is passed on to another
            // waiter.
            if let Some(woken) = woken.take() {
                woken.acted_on();
            }
            let retry_in = match attempt {
                Attempt::Granted(grant) => return Ok(grant),
                Attempt::Busy { retry_in } => retry_in,
            };
            last.is_busy();
            // Nobody announces a hold that expires. Whatever ended the wait, including
            // the end of the connection, the next step is to try again.
            let runs_out_in = retry_in.saturating_add(Duration::from_millis(1));
            let word = timeout(runs_out_in.min(RETRY_IN_MAX), freed.word()).await;
            woken = matches!(word, Ok(Ok(_))).then_some(freed);
        }
    }
}

#[async_trait]
impl WaitLine for PostgresLeaseBackend {
    async fn wait(&self, ask: Ask<'_>, last: &LastWord) -> Result<Grant, LockError> {
        let granted = self.try_until_granted(ask, last).await;
        granted.map_err(|problem| self.error(ask.key, problem))
    }
}
