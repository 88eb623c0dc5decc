//! Locks in a Consul. All connections come from the [`Env`].

mod agent;
mod failure;
mod fronts;
mod kv;
mod names;
mod session;
mod settings;

#[cfg(feature = "servers")]
pub use agent::Agent;
#[cfg(feature = "servers")]
pub use kv::Entry;
#[cfg(feature = "servers")]
pub use names::lock_of;
pub use settings::ConsulSettings;

use crate::follow_through::FollowThrough;
use crate::{
    Ask, Attempt, Env, Grant, LastWord, LockBackend, LockError, LockProblem, ReleaseOutcome,
    RenewOutcome, Term, WaitLine, without_password,
};
#[cfg(not(feature = "servers"))]
use agent::Agent;
use async_trait::async_trait;
use fronts::{Fronts, Waiter};
use kv::Locked;
use names::lock_name;
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use session::{Session, Sessions};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// A lock in the key-value store of a Consul, held by a session of its own.
///
/// One transaction grants, and returns the index that it has in the log of the servers. That
/// is the fencing token: no two changes have the same index, and it grows whatever the key, so
/// it also grows when the key was deleted in between. The `LockIndex` of a key does not: it
/// begins again with a new key.
///
/// A session is prolonged by the renewals of its lock. The server keeps it for its TTL at
/// least, and for twice its TTL before it ends it. Names the agent of this machine, which
/// finds the leader.
///
/// ```no_run
/// use fencing_lock::{ConsulBackend, ConsulSettings, LockClient, LockMetrics, LockSettings};
/// use std::{sync::Arc, time::Duration};
///
/// # fn example() -> Result<(), fencing_lock::LockError> {
/// let backend = ConsulBackend::new("127.0.0.1:8500", ConsulSettings::default())?;
/// let settings = LockSettings { ttl: Duration::from_secs(10), seed: 1 };
/// let locks = LockClient::new(Arc::new(backend), settings, LockMetrics::default())?;
/// # Ok(())
/// # }
/// ```
pub struct ConsulBackend {
    asked: Arc<Asked>,
    fronts: Fronts,
}

/// What this process has asked the server for.
struct Asked {
    agent: Arc<Agent>,
    sessions: Sessions,
    /// The sessions in whose name a lock is asked for or held, by owner.
    by_owner: Mutex<BTreeMap<String, Arc<Session>>>,
}

/// The reason that a try was not granted.
enum Busy {
    Held,
    Delayed,
}

const NAME: &str = "consul";
/// How long the server lets somebody wait in one request. A client that is cut off learns of
/// it a little later.
const WAIT: Duration = Duration::from_secs(5);
/// The end of a lock-delay changes nothing that could be waited for, and a try that comes too
/// early is not written to the log.
const DELAYED_MS: std::ops::RangeInclusive<u32> = 50..=150;
/// A session that was idle can be gone; one that was just made cannot.
const TRIES: usize = 2;

impl ConsulBackend {
    /// Takes `host:port`. Does not connect before the first use, so an unreachable server is
    /// not an error here.
    pub fn new(address: &str, settings: ConsulSettings) -> Result<ConsulBackend, LockError> {
        ConsulBackend::with_env(address, settings, Env::default())
    }

    /// Does the same in surroundings that somebody plays.
    pub fn with_env(
        address: &str,
        settings: ConsulSettings,
        env: Env,
    ) -> Result<ConsulBackend, LockError> {
        let agent = Agent::at(address, settings, env);
        let shown = without_password(address);
        let agent = agent.map_err(|problem| LockError::new(NAME, shown, "", problem))?;
        let agent = Arc::new(agent);
        Ok(ConsulBackend {
            asked: Arc::new(Asked {
                sessions: Sessions::new(agent.clone()),
                agent,
                by_owner: Mutex::default(),
            }),
            fronts: Fronts::default(),
        })
    }

    async fn wait_for(
        &self,
        ask: Ask<'_>,
        waiter: &Waiter<'_>,
        last: &LastWord,
    ) -> Result<Grant, LockProblem> {
        loop {
            let busy = match self.asked.try_once(ask).await? {
                Ok(grant) => return Ok(grant),
                Err(busy) => busy,
            };
            waiter.is_busy(last);
            match busy {
                Busy::Held => self.until_free(ask.key).await?,
                Busy::Delayed => {
                    let ms = self.env().draw(DELAYED_MS);
                    sleep(Duration::from_millis(ms.into())).await;
                }
            }
        }
    }

    async fn until_free(&self, key: &str) -> Result<(), LockProblem> {
        let (name, mut since) = (lock_name(key), 0);
        loop {
            let (index, entry) = self.asked.agent.changed(&name, since, WAIT).await?;
            if entry.is_none_or(|entry| entry.session.is_none()) {
                return Ok(());
            }
            // An index that runs backwards is of another log, and begins again.
            since = if index < since { 0 } else { index };
        }
    }
}

impl Asked {
    async fn try_once(&self, ask: Ask<'_>) -> Result<Result<Grant, Busy>, LockProblem> {
        let name = lock_name(ask.key);
        for _ in 0..TRIES {
            let session = self.sessions.one(ask.ttl).await?;
            // From here on it is known whom to end if this is given up.
            self.remember(ask.owner, &session);
            let busy = match self.agent.lock(&name, &session.id, ask.owner).await? {
                Locked::Granted(token) => {
                    let term = Term::Until(session.deadline());
                    let grant = Grant::new(token, session.confirmed_at(), session.ttl, term);
                    return grant.map(Ok);
                }
                Locked::Held => Busy::Held,
                Locked::Delayed => Busy::Delayed,
                Locked::SessionGone => continue,
            };
            self.forget(ask.owner);
            self.sessions.put_back(session);
            return Ok(Err(busy));
        }
        let why = "its session ended as soon as it was made".to_owned();
        Err(LockProblem::Refused(why))
    }

    /// Prolongs the session, and has a majority confirm that it holds the lock.
    ///
    /// A leader that was deposed and does not know it still answers renewals, which prolong
    /// nothing. It learns of it by the read, so at most one renewal is lost to it, and the
    /// next leader keeps every session for twice its TTL from its election on.
    async fn renew(&self, ask: Ask<'_>) -> Result<RenewOutcome, LockProblem> {
        let Some(session) = self.session(ask.owner) else {
            return Ok(lost(self.after(ask.key).await?));
        };
        if !self.sessions.renew(&session).await? {
            return Ok(lost(self.after(ask.key).await?));
        }
        let until = session.deadline();
        let entry = self.agent.confirmed(&lock_name(ask.key)).await?;
        Ok(match entry.and_then(|entry| entry.session) {
            Some(holder) if holder == session.id => RenewOutcome::Renewed { until },
            Some(_) => RenewOutcome::Superseded,
            None => RenewOutcome::Expired,
        })
    }

    async fn release(&self, key: &str, owner: &str) -> Result<ReleaseOutcome, LockProblem> {
        let Some(session) = self.session(owner) else {
            return self.after(key).await;
        };
        let freed = self.agent.unlock(&lock_name(key), &session.id).await?;
        self.forget(owner);
        if freed {
            self.sessions.put_back(session);
            return Ok(ReleaseOutcome::Released);
        }
        self.sessions.end_later(session);
        self.after(key).await
    }

    /// Ends the session of an owner, with everything that was asked in its name.
    async fn undo(&self, key: &str, owner: &str) -> Result<(), LockProblem> {
        let Some(session) = self.forget(owner) else {
            return Ok(());
        };
        if !self.agent.settings().lock_delay.is_zero() {
            // A lock that is free when its session ends is not delayed.
            let _or_it_is_delayed = self.agent.unlock(&lock_name(key), &session.id).await;
        }
        self.sessions.end(session).await
    }

    /// Returns what became of a lock that its owner does not hold any more.
    async fn after(&self, key: &str) -> Result<ReleaseOutcome, LockProblem> {
        let entry = self.agent.confirmed(&lock_name(key)).await?;
        Ok(match entry.and_then(|entry| entry.session) {
            Some(_another) => ReleaseOutcome::Superseded,
            None => ReleaseOutcome::Expired,
        })
    }

    fn session(&self, owner: &str) -> Option<Arc<Session>> {
        self.by_owner.lock().get(owner).cloned()
    }

    fn remember(&self, owner: &str, session: &Arc<Session>) {
        self.by_owner
            .lock()
            .insert(owner.to_owned(), session.clone());
    }

    fn forget(&self, owner: &str) -> Option<Arc<Session>> {
        self.by_owner.lock().remove(owner)
    }
}

fn lost(outcome: ReleaseOutcome) -> RenewOutcome {
    match outcome {
        ReleaseOutcome::Superseded => RenewOutcome::Superseded,
        _ => RenewOutcome::Expired,
    }
}

#[async_trait]
impl LockBackend for ConsulBackend {
    fn name(&self) -> &'static str {
        NAME
    }

    fn node(&self) -> &str {
        self.asked.agent.node()
    }

    fn requests(&self) -> Counter {
        self.asked.agent.requests().clone()
    }

    fn env(&self) -> &Env {
        self.asked.agent.env()
    }

    async fn try_acquire(&self, ask: Ask<'_>) -> Result<Attempt, LockError> {
        let tried = self.asked.try_once(ask).await;
        let tried = tried.map_err(|problem| self.error(ask.key, problem))?;
        let retry_in = Duration::MAX;
        Ok(tried.map_or(Attempt::Busy { retry_in }, Attempt::Granted))
    }

    fn line(&self) -> Option<&dyn WaitLine> {
        Some(self)
    }

    async fn renew(&self, ask: Ask<'_>) -> Result<RenewOutcome, LockError> {
        let renewed = self.asked.renew(ask).await;
        renewed.map_err(|problem| self.error(ask.key, problem))
    }

    async fn release(&self, key: &str, owner: &str) -> Result<ReleaseOutcome, LockError> {
        let released = self.asked.release(key, owner).await;
        if released.is_err() {
            let (asked, key, owner) = (self.asked.clone(), key.to_owned(), owner.to_owned());
            self.env().in_background(async move {
                let _or_it_is_ended_later = asked.undo(&key, &owner).await;
            });
        }
        released.map_err(|problem| self.error(key, problem))
    }

    /// Ends the session of the try, even if nobody waits for that. A request that comes later
    /// is refused with it.
    async fn abandon(&self, key: &str, owner: &str) -> Result<(), LockError> {
        let asked = self.asked.clone();
        let (lock, whose) = (key.to_owned(), owner.to_owned());
        let undone = FollowThrough::new(self.env(), async move { asked.undo(&lock, &whose).await });
        undone.await.map_err(|problem| self.error(key, problem))
    }
}

#[async_trait]
impl WaitLine for ConsulBackend {
    /// Waits until the key is free, and tries then. Of one process, those who came first try
    /// first; between processes there is no order.
    async fn wait(&self, ask: Ask<'_>, last: &LastWord) -> Result<Grant, LockError> {
        let waiter = self.fronts.waiter(ask.key);
        let _turn = waiter.turn(last).await;
        let granted = self.wait_for(ask, &waiter, last).await;
        granted.map_err(|problem| {
            waiter.is_problem(&problem);
            self.error(ask.key, problem)
        })
    }
}
