use super::health::Health;
use crate::dlock::{
    Ask, Attempt, Grant, LockBackend, LockError, LockProblem, RenewOutcome, UnsafeRelease, WaitLine,
};
use crate::model::ReleaseOutcome;
use async_trait::async_trait;
use prometheus_client::metrics::counter::Counter;
use std::sync::Arc;

/// A backend whose failures are noted as they happen.
///
/// The client goes on trying until its deadline, as it should, and so a server
/// that refuses everything would be heard of only then.
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

/// Without the key and the server, which would make each error another one.
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
        // That a lock can be given back does not mean that one can be had.
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
    async fn wait(&self, ask: Ask<'_>) -> Result<Grant, LockError> {
        let Some(line) = self.backend.line() else {
            unreachable!("the line is offered only where there is one");
        };
        self.note(line.wait(ask).await)
    }
}
