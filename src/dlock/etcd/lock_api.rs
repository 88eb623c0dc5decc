use super::failure::Failure;
use super::line;
use super::members::Members;
use super::names::lock_name;
use super::session::Session;
use super::{EtcdSettings, connect_later};
use crate::dlock::{
    Ask, Attempt, Grant, LockBackend, LockError, LockProblem, RenewOutcome, Term, WaitLine,
};
use crate::model::{FencingToken, ReleaseOutcome};
use async_trait::async_trait;
use etcd_client::LockOptions;
use prometheus_client::metrics::counter::Counter;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// The lock that the etcd server itself offers, to compare with: its line
/// stands at the server, and one call waits in it.
///
/// The server knows a waiter by its lease, so each attempt has a lease of its
/// own. Revoking that lease undoes everything, a call that is still under way
/// included. `Unlock` is not used: it deletes any key that it is given.
///
/// Not to be built on: the server is known to stop granting after many waiting
/// calls were cancelled (etcd issue 13336). [`EtcdBackend`](super::EtcdBackend)
/// does without it.
pub struct EtcdLockApiBackend {
    members: Arc<Members>,
    /// By owner.
    sessions: Mutex<HashMap<String, Arc<Session>>>,
}

const NAME: &str = "etcd-lock-api";

impl EtcdLockApiBackend {
    /// Connects at the first use: servers that are not there yet are no error here.
    pub fn new(
        members: &[String],
        settings: EtcdSettings,
    ) -> Result<EtcdLockApiBackend, LockError> {
        Ok(EtcdLockApiBackend {
            members: connect_later(NAME, members, settings)?,
            sessions: Mutex::default(),
        })
    }

    /// However it fails, no session is left that would keep its place alive.
    async fn lock(&self, ask: Ask<'_>) -> Result<Grant, Failure> {
        let session = Arc::new(Session::open(self.members.clone(), ask.ttl).await?);
        self.sessions()
            .insert(ask.owner.to_owned(), session.clone());
        let granted = self.lock_within(&session, ask).await;
        if granted.is_err() {
            let _or_it_runs_out = self.end(ask.owner).await;
        }
        granted
    }

    async fn lock_within(&self, session: &Session, ask: Ask<'_>) -> Result<Grant, Failure> {
        let place = loop {
            let (index, mut wire, mut changes) = self.members.preferred().await?;
            let options = LockOptions::new().with_lease(session.lease());
            self.members.requests().inc();
            let called = tokio::select! {
                called = wire.lock.lock(lock_name(ask.key), Some(options)) => called,
                // The same lease stands at the same place, whoever is asked.
                _ = changes.changed() => continue,
                () = session.over() => return Err(Failure::LeaseGone),
            };
            match called.map_err(Failure::from) {
                Ok(answer) => break answer.key().to_vec(),
                Err(failure) => {
                    self.members.prefer_after(index);
                    return Err(failure);
                }
            }
        };
        let asked_at = Instant::now();
        let found = self.members.ask(|wire| {
            let (mut kv, place) = (wire.kv.clone(), place.clone());
            async move { kv.get(place, None).await }
        });
        let found = found.await?;
        // Not the revision in the answer's header: that one is of the release
        // that made us holder, or of something else.
        let own = found.kvs().first().ok_or(Failure::LeaseGone)?;
        let token = u64::try_from(own.create_revision());
        let token = token.map_err(|_| Failure::Garbage("a negative revision".to_owned()))?;
        Ok(Grant {
            token: FencingToken(token),
            asked_at,
            ttl: session.ttl(),
            term: Term::Session(session.belief()),
        })
    }

    async fn lock_if_free(&self, ask: Ask<'_>) -> Result<Attempt, Failure> {
        let busy = Attempt::Busy {
            retry_in: Duration::MAX,
        };
        if line::after(&self.members, ask.key).await? == ReleaseOutcome::Superseded {
            return Ok(busy);
        }
        // Somebody may have come between: then this call would wait.
        let limit = 2 * self.members.request_timeout();
        match timeout(limit, self.lock(ask)).await {
            Ok(granted) => granted.map(Attempt::Granted),
            Err(_) => {
                self.end(ask.owner).await?;
                Ok(busy)
            }
        }
    }

    /// Ends the attempt's session and with it all that it did. Where nobody
    /// answers, its lease runs out, since nothing keeps it alive any more.
    async fn end(&self, owner: &str) -> Result<(), Failure> {
        let session = self.sessions().remove(owner);
        match session {
            Some(session) => session.close().await,
            None => Err(Failure::LeaseGone),
        }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.sessions
            .lock()
            .expect("nobody panics while holding it")
    }
}

#[async_trait]
impl LockBackend for EtcdLockApiBackend {
    fn name(&self) -> &'static str {
        NAME
    }

    fn node(&self) -> &str {
        self.members.node()
    }

    fn requests(&self) -> Counter {
        self.members.requests().clone()
    }

    async fn try_acquire(&self, ask: Ask<'_>) -> Result<Attempt, LockError> {
        let attempt = self.lock_if_free(ask).await;
        attempt.map_err(|failure| self.error(ask.key, failure.into()))
    }

    fn line(&self) -> Option<&dyn WaitLine> {
        Some(self)
    }

    async fn renew(&self, ask: Ask<'_>) -> Result<RenewOutcome, LockError> {
        let session = self.sessions().get(ask.owner).cloned();
        let confirmed = match &session {
            Some(session) => session.confirm().await.map(|()| session.deadline()),
            None => Err(Failure::LeaseGone),
        };
        let renewed = match confirmed {
            Ok(until) => Ok(RenewOutcome::Renewed { until }),
            Err(Failure::LeaseGone) => match line::after(&self.members, ask.key).await {
                Ok(ReleaseOutcome::Superseded) => Ok(RenewOutcome::Superseded),
                Ok(_) => Ok(RenewOutcome::Expired),
                Err(failure) => Err(failure),
            },
            Err(failure) => Err(failure),
        };
        renewed.map_err(|failure| self.error(ask.key, failure.into()))
    }

    async fn release(&self, key: &str, owner: &str) -> Result<ReleaseOutcome, LockError> {
        let released = match self.end(owner).await {
            Ok(()) => Ok(ReleaseOutcome::Released),
            Err(Failure::LeaseGone) => line::after(&self.members, key).await,
            Err(failure) => Err(failure),
        };
        released.map_err(|failure| self.error(key, LockProblem::from(failure)))
    }
}

#[async_trait]
impl WaitLine for EtcdLockApiBackend {
    async fn wait(&self, ask: Ask<'_>) -> Result<Grant, LockError> {
        let granted = self.lock(ask).await;
        granted.map_err(|failure| self.error(ask.key, failure.into()))
    }
}
