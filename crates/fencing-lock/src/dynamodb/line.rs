use super::failure::Failure;
use super::{DynamoDbBackend, Shared};
use crate::wakes::Wake;
use crate::{Ask, Attempt, Grant, LastWord, LockBackend, LockError, LockProblem, WaitLine};
use async_trait::async_trait;
use std::ops::RangeInclusive;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// DynamoDB announces nothing, so waiters look again, each time after a random wait.
const LOOK_AGAIN_MS: RangeInclusive<u32> = 50..=150;
/// All waiters of a process for one key look no more often than this.
const JUST_NOW: Duration = Duration::from_millis(50);

impl DynamoDbBackend {
    async fn try_until_granted(&self, ask: Ask<'_>, last: &LastWord) -> Result<Grant, LockProblem> {
        let Shared {
            api,
            watched,
            wakes,
            ..
        } = &*self.shared;
        let mut woken: Option<Wake> = None;
        loop {
            // From here on, no release of this process is missed.
            let expected = wakes.expect(ask.key);
            let attempt = match watched.held_just_now(ask.key, JUST_NOW) {
                Some(until) => Attempt::Busy {
                    retry_in: until.saturating_duration_since(Instant::now()),
                },
                None => match self.try_now(ask).await {
                    Ok(attempt) => attempt,
                    Err(Failure::Throttled(words)) => {
                        last.is_problem(LockProblem::Refused(words));
                        api.pause(LOOK_AGAIN_MS).await;
                        continue;
                    }
                    Err(failure) => return Err(failure.into()),
                },
            };
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
            let look_again = Duration::from_millis(api.env().draw(LOOK_AGAIN_MS).into());
            let wait = look_again.min(retry_in.saturating_add(Duration::from_millis(1)));
            let Ok(mut freed) = expected else {
                return Err(LockProblem::NoAnswer("the backend has ended".to_owned()));
            };
            let word = timeout(wait, freed.word()).await;
            woken = matches!(word, Ok(Ok(_))).then_some(freed);
        }
    }
}

#[async_trait]
impl WaitLine for DynamoDbBackend {
    async fn wait(&self, ask: Ask<'_>, last: &LastWord) -> Result<Grant, LockError> {
        let granted = self.try_until_granted(ask, last).await;
        granted.map_err(|problem| self.error(ask.key, problem))
    }
}
