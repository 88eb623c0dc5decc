mod arrivals;
mod debts;
mod entry;
mod failure;
mod line;
mod lock_api;
mod members;
mod names;
mod places;
mod presence;
mod seats;
mod session;
mod standing;
mod watches;
mod wire;

#[cfg(feature = "servers")]
pub use failure::Failure;
pub use lock_api::EtcdLockApiBackend;
#[cfg(feature = "servers")]
pub use members::check_address;
#[cfg(feature = "servers")]
pub use names::{line_prefix, lock_of};
#[cfg(feature = "servers")]
pub use wire::{Wire, wire, wire_in};

#[cfg(all(debug_assertions, feature = "mutants"))]
use super::Mutant;
use super::{
    Ask, Attempt, Env, Grant, LastWord, LockBackend, LockError, LockProblem, RenewOutcome, Term,
    WaitLine,
};
use crate::ReleaseOutcome;
use crate::backend::IfHeld;
use async_trait::async_trait;
use line::Before;
use members::Members;
use prometheus_client::metrics::counter::Counter;
use standing::{Place, Standing};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A lock on an etcd cluster: a line in the order of revisions, under a lease
/// that all locks of this object share.
///
/// Each attempt writes its own key under the lock's prefix, in one transaction that also
/// returns whether there is a key before it. The owner of the first key holds the lock;
/// everybody else watches the one key just before their own, so a release wakes exactly
/// one waiter, in the order in which they came. The fencing token is the create revision
/// of the holder's key: the cluster's revisions only grow, whatever the key, and they are
/// lost only with the whole store (a restored snapshot can set them back).
///
/// The lease is kept alive in the background for as long as this object lives. When it is
/// lost, all locks are lost together and every [`Lease`](super::Lease) is informed; the
/// next attempt begins with a new one. Leases are counted in whole seconds, and the
/// cluster has a minimum (2 s with etcd's own defaults).
///
/// Name all members: any one of them may fail, freeze or come back.
///
/// ```no_run
/// use fencing_lock::{EtcdBackend, EtcdSettings, LockClient, LockMetrics, LockSettings};
/// use std::{sync::Arc, time::Duration};
///
/// # fn example() -> Result<(), fencing_lock::LockError> {
/// let members = ["etcd-1:2379", "etcd-2:2379", "etcd-3:2379"].map(String::from);
/// let backend = EtcdBackend::new(&members, EtcdSettings::default())?;
/// let settings = LockSettings { ttl: Duration::from_secs(5), seed: 1 };
/// let locks = LockClient::new(Arc::new(backend), settings, LockMetrics::default())?;
/// # Ok(())
/// # }
/// ```
pub struct EtcdBackend {
    standing: Arc<Standing>,
    queue_max: usize,
    #[cfg(all(debug_assertions, feature = "mutants"))]
    mutant: Option<Mutant>,
}

#[derive(Clone, Copy, Debug)]
pub struct EtcdSettings {
    /// Limits one request to one member; after that, another member is asked. Keep it a
    /// small part of the TTL, or a session ends with the member that froze.
    pub request_timeout: Duration,
    /// Limits how many may wait for one lock; anyone beyond that is refused at once.
    pub queue_max: usize,
    /// A mistake made on purpose, so that a test can prove that the mistake is detected.
    #[cfg(all(debug_assertions, feature = "mutants"))]
    pub mutant: Option<Mutant>,
}

impl Default for EtcdSettings {
    fn default() -> EtcdSettings {
        EtcdSettings {
            request_timeout: Duration::from_millis(500),
            queue_max: 10_000,
            #[cfg(all(debug_assertions, feature = "mutants"))]
            mutant: None,
        }
    }
}

const NAME: &str = "etcd";

impl EtcdBackend {
    /// Does not connect before the first use, so an unreachable server is not an error
    /// here.
    pub fn new(members: &[String], settings: EtcdSettings) -> Result<EtcdBackend, LockError> {
        EtcdBackend::with_env(members, settings, Env::default())
    }

    /// Does the same in surroundings that may be simulated.
    pub fn with_env(
        members: &[String],
        settings: EtcdSettings,
        env: Env,
    ) -> Result<EtcdBackend, LockError> {
        let members = connect_later(NAME, members, settings, env)?;
        Ok(EtcdBackend {
            standing: Standing::new(members),
            queue_max: settings.queue_max,
            #[cfg(all(debug_assertions, feature = "mutants"))]
            mutant: settings.mutant,
        })
    }

    /// Ends the session, and all locks with it, without waiting for its TTL.
    pub async fn close(&self) -> Result<(), LockError> {
        let closed = self.standing.close().await;
        closed.map_err(|failure| self.error("", failure.into()))
    }

    fn grant(&self, place: &Place, asked_at: Instant) -> Result<Grant, LockProblem> {
        let session = &place.presence.session;
        let term = Term::Session(session.belief());
        Grant::new(place.seen.token()?, asked_at, session.ttl(), term)
    }

    async fn wait_for(&self, ask: Ask<'_>, last: &LastWord) -> Result<Grant, LockProblem> {
        let asked_at = Instant::now();
        let entered = self.standing.enter(ask, IfHeld::StandInLine).await?;
        let mut place = entered.ok_or_else(|| LockProblem::BadAnswer("busy".to_owned()))?;
        match place.seen.before {
            Before::Nobody => {
                self.standing.is_first(&place);
                return self.grant(&place, asked_at);
            }
            Before::Key(_) => {}
            Before::Somebody { length } => {
                // Leave out the holder and ourselves.
                let waiting = length.saturating_sub(2);
                let max = self.queue_max;
                if waiting >= max {
                    return Err(LockProblem::QueueFull { waiting, max });
                }
            }
        }
        #[cfg(all(debug_assertions, feature = "mutants"))]
        if self.mutant == Some(Mutant::EnterWithoutLock) {
            return self.grant(&place, asked_at);
        }
        last.is_busy();
        let first_at = self.standing.until_first(&mut place, last).await?;
        self.grant(&place, first_at)
    }
}

#[async_trait]
impl LockBackend for EtcdBackend {
    fn name(&self) -> &'static str {
        NAME
    }

    fn node(&self) -> &str {
        self.standing.members().node()
    }

    fn requests(&self) -> Counter {
        self.standing.members().requests().clone()
    }

    fn env(&self) -> &Env {
        self.standing.members().env()
    }

    async fn try_acquire(&self, ask: Ask<'_>) -> Result<Attempt, LockError> {
        let asked_at = Instant::now();
        let entered = self.standing.enter(ask, IfHeld::ComeBack).await;
        let attempt = entered.and_then(|place| match place {
            Some(place) => {
                self.standing.is_first(&place);
                Ok(Attempt::Granted(self.grant(&place, asked_at)?))
            }
            None => Ok(Attempt::Busy {
                retry_in: Duration::MAX,
            }),
        });
        attempt.map_err(|problem| self.error(ask.key, problem))
    }

    fn line(&self) -> Option<&dyn WaitLine> {
        Some(self)
    }

    async fn renew(&self, ask: Ask<'_>) -> Result<RenewOutcome, LockError> {
        let renewed = self.standing.renew(ask.key, ask.owner).await;
        renewed.map_err(|failure| self.error(ask.key, failure.into()))
    }

    async fn release(&self, key: &str, owner: &str) -> Result<ReleaseOutcome, LockError> {
        let left = self.standing.release(key, owner).await;
        left.map_err(|failure| self.error(key, failure.into()))
    }

    async fn abandon(&self, key: &str, owner: &str) -> Result<(), LockError> {
        let left = self.standing.abandon(owner).await;
        left.map_err(|failure| self.error(key, failure.into()))
    }
}

#[async_trait]
impl WaitLine for EtcdBackend {
    async fn wait(&self, ask: Ask<'_>, last: &LastWord) -> Result<Grant, LockError> {
        let _at_the_end = self.standing.members().tell_silence_to(last);
        let granted = self.wait_for(ask, last).await;
        granted.map_err(|problem| self.error(ask.key, problem))
    }
}

fn connect_later(
    backend: &'static str,
    members: &[String],
    settings: EtcdSettings,
    env: Env,
) -> Result<Arc<Members>, LockError> {
    let made = Members::new(members, settings.request_timeout, env);
    made.map(Arc::new)
        .map_err(|problem| LockError::new(backend, members.join(","), "", problem))
}
