use super::*;
use async_trait::async_trait;
use fencing_lock::{
    Ask, Attempt, Grant, LastWord, LockProblem, ReleaseOutcome, RenewOutcome, UnsafeRelease,
    WaitLine,
};
use prometheus_client::metrics::counter::Counter;

/// A backend that records failures as they happen.
///
/// The client correctly keeps trying until its deadline, so without this a server that refuses
/// everything would be noticed only then.
pub(super) struct Overheard {
    pub(super) backend: Arc<dyn LockBackend>,
    pub(super) health: Arc<Health>,
}

impl Overheard {
    fn note<T>(&self, answer: Result<T, LockError>) -> Result<T, LockError> {
        match &answer {
            Ok(_) => self.health.went_right(),
            Err(error) => self.health.went_wrong(words(&error.problem)),
        }
        answer
    }
}

/// Describes a problem without the key and the server, which would make each error a different one.
fn words(problem: &LockProblem) -> String {
    format!("the lock: {problem}")
}

#[async_trait]
impl LockBackend for Overheard {
    fn name(&self) -> &'static str {
        self.backend.name()
    }

    fn node(&self) -> &str {
        self.backend.node()
    }

    fn requests(&self) -> Counter {
        self.backend.requests()
    }

    fn new_owner(&self) -> String {
        self.backend.new_owner()
    }

    async fn try_acquire(&self, ask: Ask<'_>) -> Result<Attempt, LockError> {
        self.note(self.backend.try_acquire(ask).await)
    }

    fn line(&self) -> Option<&dyn WaitLine> {
        self.backend.line().map(|_| self as &dyn WaitLine)
    }

    async fn renew(&self, ask: Ask<'_>) -> Result<RenewOutcome, LockError> {
        self.note(self.backend.renew(ask).await)
    }

    async fn release(&self, key: &str, owner: &str) -> Result<ReleaseOutcome, LockError> {
        let answer = self.backend.release(key, owner).await;
        // A successful release does not show that a lock can be acquired.
        answer.inspect_err(|error| self.health.went_wrong(words(&error.problem)))
    }

    async fn abandon(&self, key: &str, owner: &str) -> Result<(), LockError> {
        self.backend.abandon(key, owner).await
    }

    fn unsafe_release(&self) -> Option<&dyn UnsafeRelease> {
        self.backend.unsafe_release()
    }
}

#[async_trait]
impl WaitLine for Overheard {
    async fn wait(&self, ask: Ask<'_>, last: &LastWord) -> Result<Grant, LockError> {
        let Some(line) = self.backend.line() else {
            unreachable!("the line is offered only where there is one");
        };
        self.note(line.wait(ask, last).await)
    }
}
