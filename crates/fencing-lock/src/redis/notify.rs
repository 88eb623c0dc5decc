use super::keys::freed_channel;
use super::link::RedisLink;
use super::lock_error;
use super::plain::Plain;
use super::subscriptions::Subscriptions;
use crate::wakes::Wake;
use crate::{Ask, Attempt, Grant, LastWord, LockError, LockProblem, WaitLine};
use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// The line of [`WaitPolicy::Notify`](crate::WaitPolicy::Notify): a release is announced
/// to every process, and in each of them one waiter tries again. There is no order
/// between processes, and for each try that is granted there can be as many in vain as
/// there are processes.
pub(super) struct NotifyLine {
    link: Arc<RedisLink>,
    pub(super) plain: Plain,
    subscriptions: Arc<Subscriptions>,
}

/// After this time nobody relies on the connection to still bring messages.
const RETRY_IN_MAX: Duration = Duration::from_secs(5);

impl NotifyLine {
    pub(super) fn new(link: Arc<RedisLink>, plain: Plain) -> NotifyLine {
        NotifyLine {
            subscriptions: Arc::new(Subscriptions::new(link.clone())),
            link,
            plain,
        }
    }

    async fn try_until_granted(&self, ask: Ask<'_>, last: &LastWord) -> Result<Grant, LockProblem> {
        // If nobody holds the lock, this is enough.
        if let Attempt::Granted(grant) = self.plain.try_acquire(ask).await? {
            return Ok(grant);
        }
        last.is_busy();
        let listener = self.subscriptions.listener(freed_channel(ask.key)).await;
        let mut woken: Option<Wake> = None;
        loop {
            // Subscribe, then try, then wait: in any other order a release can come in
            // between, and nobody learns of it.
            let open = listener.subscribed().await?;
            let Ok(mut freed) = open.wakes.expect(listener.channel()) else {
                continue;
            };
            let attempt = self.plain.try_acquire(ask).await?;
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
impl WaitLine for NotifyLine {
    async fn wait(&self, ask: Ask<'_>, last: &LastWord) -> Result<Grant, LockError> {
        let granted = self.try_until_granted(ask, last).await;
        granted.map_err(|problem| lock_error(&self.link, ask.key, problem))
    }
}
