use super::failure::Failure;
use super::line;
use super::members::Members;
use super::names::{line_prefix, lock_name};
use super::session::Session;
use super::standing::lost;
use super::{EtcdSettings, connect_later};
use crate::{
    Ask, Attempt, Env, Grant, LastWord, LockBackend, LockError, LockProblem, RenewOutcome, Term,
    WaitLine,
};
use crate::{FencingToken, ReleaseOutcome};
use async_trait::async_trait;
use etcd_client::LockOptions;
use prometheus_client::metrics::counter::Counter;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// The lock that the etcd server itself offers, for comparison: the server keeps the
/// line, and one call waits in it.
///
/// The server identifies a waiter by its lease, so each attempt has a separate lease.
/// Revoking that lease undoes everything, including a call that is still under way.
/// `Unlock` is not used: it deletes any key that it is given.
///
/// A lease is used in one call only. A member that finds a call given up deletes the place
/// by its name, whenever it finds that, and a second call with the same lease would have
/// the same place. So an attempt whose member became silent ends, and its place is lost.
///
/// Do not build on it: the server is known to stop granting after many waiting calls were
/// cancelled (etcd issue 13336). [`EtcdBackend`](super::EtcdBackend) does not use it.
pub struct EtcdLockApiBackend {
    members: Arc<Members>,
    /// Keyed by owner.
    attempts: Mutex<BTreeMap<String, Arc<Attempted>>>,
}

struct Attempted {
    session: Session,
    /// The key of the place, once the lock is granted.
    place: OnceLock<Vec<u8>>,
}

const NAME: &str = "etcd-lock-api";

const BUSY: Attempt = Attempt::Busy {
    retry_in: Duration::MAX,
};

impl EtcdLockApiBackend {
    /// Does not connect before the first use, so an unreachable server is not an error
    /// here.
    pub fn new(
        members: &[String],
        settings: EtcdSettings,
    ) -> Result<EtcdLockApiBackend, LockError> {
        EtcdLockApiBackend::with_env(members, settings, Env::default())
    }

    /// Does the same in surroundings that may be simulated.
    pub fn with_env(
        members: &[String],
        settings: EtcdSettings,
        env: Env,
    ) -> Result<EtcdLockApiBackend, LockError> {
        Ok(EtcdLockApiBackend {
            members: connect_later(NAME, members, settings, env)?,
            attempts: Mutex::default(),
        })
    }

    /// Locks, and leaves no session behind that would keep its place alive if it fails.
    async fn lock(&self, ask: Ask<'_>, last: &LastWord) -> Result<Grant, Failure> {
        let attempted = Arc::new(Attempted {
            session: Session::open(self.members.clone(), ask.ttl).await?,
            place: OnceLock::new(),
        });
        self.attempts()
            .insert(ask.owner.to_owned(), attempted.clone());
        // The call that waits says nothing until it is granted.
        last.is_busy();
        let granted = self.lock_within(&attempted, ask).await;
        if granted.is_err() {
            let _or_it_is_revoked_later = self.end(ask.owner).await;
        }
        granted
    }

    async fn lock_within(&self, attempted: &Attempted, ask: Ask<'_>) -> Result<Grant, Failure> {
        let Attempted { session, place } = attempted;
        let (index, mut wire, mut changes) = self.members.preferred().await?;
        let options = LockOptions::new().with_lease(session.lease());
        self.members.requests().inc();
        let called = tokio::select! {
            biased;
            called = wire.lock.lock(lock_name(ask.key), Some(options)) => called,
            _ = changes.changed() => {
                return Err(Failure::Unanswered("its member is silent".to_owned()));
            }
            () = session.over() => return Err(Failure::LeaseGone),
            never = self.members.probe(|| true) => match never {},
        };
        let called = called.map_err(Failure::from).inspect_err(|failure| {
            if failure.is_of_the_member() {
                self.members.prefer_after(index);
            }
        })?;
        let place = place.get_or_init(|| called.key().to_vec());
        let asked_at = Instant::now();
        // The revision in the header of the call's answer is not the token: it belongs to
        // the release that made us the holder, or to something else.
        let (own, _instead) = line::state(&self.members, &line_prefix(ask.key), place).await?;
        let token = own.ok_or(Failure::LeaseGone)?.create_revision();
        let token = u64::try_from(token);
        let token = token.map_err(|_| Failure::Garbage("a negative revision".to_owned()))?;
        let term = Term::Session(session.belief());
        let grant = Grant::new(FencingToken(token), asked_at, session.ttl(), term);
        grant.map_err(|_too_late| Failure::LeaseGone)
    }

    async fn lock_if_free(&self, ask: Ask<'_>) -> Result<Attempt, Failure> {
        if self.is_held(ask.key).await? {
            return Ok(BUSY);
        }
        // Somebody may have taken the lock in the meantime: then this call would wait.
        let limit = 2 * self.members.request_timeout();
        if let Ok(granted) = timeout(limit, self.lock(ask, &LastWord::default())).await {
            return granted.map(Attempt::Granted);
        }
        match self.end(ask.owner).await {
            Ok(()) | Err(Failure::LeaseGone) if self.is_held(ask.key).await? => Ok(BUSY),
            Ok(()) | Err(Failure::LeaseGone) => Err(Failure::too_slow(limit)),
            Err(failure) => Err(failure),
        }
    }

    async fn is_held(&self, key: &str) -> Result<bool, Failure> {
        Ok(line::after(&self.members, key).await? == ReleaseOutcome::Superseded)
    }

    async fn prolong(&self, ask: Ask<'_>) -> Result<RenewOutcome, Failure> {
        let attempted = self.attempts().get(ask.owner).cloned();
        let place = attempted.as_ref().and_then(|one| one.place.get());
        let (Some(attempted), Some(place)) = (&attempted, place) else {
            return Ok(lost(line::after(&self.members, ask.key).await?));
        };
        let (own, instead) = line::state(&self.members, &line_prefix(ask.key), place).await?;
        match own {
            Some(_) => attempted.session.renew().await,
            None => Ok(lost(instead)),
        }
    }

    /// Ends the attempt's session and everything it did.
    async fn end(&self, owner: &str) -> Result<(), Failure> {
        let attempted = self.attempts().remove(owner);
        match attempted {
            Some(attempted) => attempted.session.close().await,
            None => Err(Failure::LeaseGone),
        }
    }

    fn attempts(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Attempted>>> {
        self.attempts
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

    fn env(&self) -> &Env {
        self.members.env()
    }

    async fn try_acquire(&self, ask: Ask<'_>) -> Result<Attempt, LockError> {
        let attempt = self.lock_if_free(ask).await;
        attempt.map_err(|failure| self.error(ask.key, failure.into()))
    }

    fn line(&self) -> Option<&dyn WaitLine> {
        Some(self)
    }

    async fn renew(&self, ask: Ask<'_>) -> Result<RenewOutcome, LockError> {
        let renewed = self.prolong(ask).await;
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
    async fn wait(&self, ask: Ask<'_>, last: &LastWord) -> Result<Grant, LockError> {
        let _at_the_end = self.members.tell_silence_to(last);
        let granted = self.lock(ask, last).await;
        granted.map_err(|failure| self.error(ask.key, failure.into()))
    }
}
