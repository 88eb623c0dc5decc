use super::keys::freed_channel;
use super::link::RedisLink;
use super::lock_error;
use super::plain::Plain;
use super::subscriptions::Subscriptions;
use crate::wakes::granted_when_freed;
use crate::{Ask, Attempt, Grant, LastWord, LockError, LockProblem, WaitLine};
use async_trait::async_trait;
use std::sync::Arc;

/// The line of [`WaitPolicy::Notify`](crate::WaitPolicy::Notify): a release is announced
/// to every process, and in each of them one waiter tries again. There is no order
/// between processes, and for each try that is granted there can be as many in vain as
/// there are processes.
pub(super) struct NotifyLine {
    link: Arc<RedisLink>,
    pub(super) plain: Plain,
    subscriptions: Arc<Subscriptions>,
}

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
        let expect = || async {
            let open = listener.subscribed().await?;
            Ok::<_, LockProblem>(open.wakes.expect(listener.channel()).ok())
        };
        granted_when_freed(last, || self.plain.try_acquire(ask), expect).await
    }
}

#[async_trait]
impl WaitLine for NotifyLine {
    async fn wait(&self, ask: Ask<'_>, last: &LastWord) -> Result<Grant, LockError> {
        let granted = self.try_until_granted(ask, last).await;
        granted.map_err(|problem| lock_error(&self.link, ask.key, problem))
    }
}
