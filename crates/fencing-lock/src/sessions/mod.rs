//! Locks that a session of a database holds until it ends, without a TTL.

mod keeper;
mod pool;

use crate::shared_belief::SharedBelief;
use crate::task::Task;
use crate::{
    Ask, Attempt, Env, FencingToken, Grant, LastWord, LockBackend, LockError, LockProblem,
    ReleaseOutcome, RenewOutcome, Term, WaitLine,
};
use async_trait::async_trait;
use keeper::Keeper;
use parking_lot::Mutex;
use pool::{Session, Sessions};
use prometheus_client::metrics::counter::Counter;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::DropGuard;

/// A server whose sessions hold locks.
#[async_trait]
pub trait SessionServer: Send + Sync + Sized + 'static {
    type Connection: SessionConnection;

    fn env(&self) -> &Env;

    fn response_timeout(&self) -> Duration;

    /// Opens a session, within the time limit for that. The guard is dropped when its
    /// connection ends, in any way.
    async fn connect(&self, ended: DropGuard) -> Result<Self::Connection, LockProblem>;

    /// Has the server end what it does on this connection, if it can be reached in time.
    async fn stop(&self, connection: &Self::Connection);
}

/// The connection of one session. It closes when it is dropped, and the session ends.
#[async_trait]
pub trait SessionConnection: Send + Sync + 'static {
    fn is_closed(&self) -> bool;

    /// Returns how long the server lets a session be silent.
    fn silent_max(&self) -> Duration {
        Duration::MAX
    }

    /// Asks for a lock. If somebody else holds it, the server waits for so long.
    async fn take(&self, wanted: Wanted<'_>, wait: Duration) -> Result<Taken, LockProblem>;

    /// Returns whether the session still serves this owner.
    async fn confirm(&self, wanted: Wanted<'_>) -> Result<bool, LockProblem>;

    async fn release(&self, wanted: Wanted<'_>) -> Result<ReleaseOutcome, LockProblem>;
}

#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    pub key: &'a str,
    pub owner: &'a str,
}

pub enum Taken {
    /// With this token.
    Granted(u64),
    Busy,
    /// The session serves another client as well, and to the server both are one holder.
    Shared,
}

/// The locks of one server that its sessions hold, each with a session of its own.
///
/// The server knows no TTL: it frees a lock when its session ends, and does not end a
/// session whose client only stands still. The TTL is for the holder: it stops to believe
/// in its lock when its session was not confirmed for so long, or has ended.
pub struct SessionBackend<S: SessionServer> {
    name: &'static str,
    node: String,
    sessions: Sessions<S>,
    /// Whether holders confirm their sessions.
    confirms: bool,
    held: Mutex<BTreeMap<String, Held<S>>>,
}

struct Held<S: SessionServer> {
    session: Arc<Session<S>>,
    _keeping: Keeping<S>,
}

/// What a holder's belief in its lock comes from, and ends with.
enum Keeping<S: SessionServer> {
    Confirmed { _by: Task },
    Trusted { _without: Keeper<S> },
}

/// How long the server lets somebody wait in one statement. A client that is cut off
/// learns of it then.
const WAIT_MAX: Duration = Duration::from_secs(5);

impl<S: SessionServer> SessionBackend<S> {
    pub(crate) fn of(name: &'static str, node: String, server: S) -> SessionBackend<S> {
        SessionBackend {
            name,
            node,
            sessions: Sessions::new(server),
            confirms: true,
            held: Mutex::default(),
        }
    }

    /// Makes holders believe in their locks for a TTL without a look at their sessions.
    #[cfg(all(feature = "mariadb", feature = "unsafe-modes"))]
    pub(crate) fn without_confirmations(self) -> SessionBackend<S> {
        let confirms = false;
        SessionBackend { confirms, ..self }
    }

    // Whatever ends one of these early drops its session, and the server frees what it holds.
    async fn try_once(&self, ask: Ask<'_>) -> Result<Attempt, LockProblem> {
        let (session, taken, asked_at) = self.sessions.take(wanted(ask), Duration::ZERO).await?;
        match taken {
            Taken::Busy => {
                self.sessions.put_back(session);
                let retry_in = Duration::MAX;
                Ok(Attempt::Busy { retry_in })
            }
            Taken::Shared => Err(shared_session()),
            Taken::Granted(token) => self
                .granted(session, token, asked_at, ask)
                .map(Attempt::Granted),
        }
    }

    async fn wait_once(&self, ask: Ask<'_>) -> Result<Option<Grant>, LockProblem> {
        let (session, taken, _) = self.sessions.take(wanted(ask), WAIT_MAX).await?;
        let token = match taken {
            // The session is not used again: some servers may have granted it the lock all the
            // same.
            Taken::Busy => return Ok(None),
            Taken::Shared => return Err(shared_session()),
            Taken::Granted(token) => token,
        };
        // It may have been granted long ago, if this process stood still. So it counts from
        // a question that is younger than the grant.
        let asked_at = Instant::now();
        if !session.confirm(wanted(ask)).await? {
            return Err(shared_session());
        }
        self.granted(session, token, asked_at, ask).map(Some)
    }

    fn granted(
        &self,
        session: Session<S>,
        token: u64,
        asked_at: Instant,
        ask: Ask<'_>,
    ) -> Result<Grant, LockProblem> {
        let belief = SharedBelief::until(asked_at + ask.ttl);
        let term = Term::Session(belief.subscribe());
        let grant = Grant::new(FencingToken(token), asked_at, ask.ttl, term)?;
        let session = Arc::new(session);
        let keeper = Keeper {
            session: session.clone(),
            key: ask.key.to_owned(),
            owner: ask.owner.to_owned(),
            ttl: ask.ttl,
            belief,
        };
        let held = Held {
            session,
            _keeping: match self.confirms {
                true => Keeping::Confirmed {
                    _by: self.env().spawn(keeper.keep()),
                },
                false => Keeping::Trusted { _without: keeper },
            },
        };
        self.held.lock().insert(ask.owner.to_owned(), held);
        Ok(grant)
    }

    async fn release_once(&self, wanted: Wanted<'_>) -> Result<ReleaseOutcome, LockProblem> {
        let Some(held) = self.held.lock().remove(wanted.owner) else {
            return Err(LockProblem::NoAnswer("its session is over".to_owned()));
        };
        let session = held.session.clone();
        // The keeper ends before the session is used for something else.
        drop(held);
        // Without an answer the session is dropped, and the server frees the lock with it.
        let outcome = session.release(wanted).await?;
        if let (ReleaseOutcome::Released, Some(session)) = (outcome, Arc::into_inner(session)) {
            self.sessions.put_back(session);
        }
        Ok(outcome)
    }
}

#[async_trait]
impl<S: SessionServer> LockBackend for SessionBackend<S> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn node(&self) -> &str {
        &self.node
    }

    fn requests(&self) -> Counter {
        self.sessions.requests()
    }

    fn env(&self) -> &Env {
        self.sessions.env()
    }

    async fn try_acquire(&self, ask: Ask<'_>) -> Result<Attempt, LockError> {
        let attempt = self.try_once(ask).await;
        attempt.map_err(|problem| self.error(ask.key, problem))
    }

    fn line(&self) -> Option<&dyn WaitLine> {
        Some(self)
    }

    async fn renew(&self, ask: Ask<'_>) -> Result<RenewOutcome, LockError> {
        let held = self
            .held
            .lock()
            .get(ask.owner)
            .map(|held| held.session.clone());
        let Some(session) = held else {
            return Ok(RenewOutcome::Expired);
        };
        let until = Instant::now() + ask.ttl;
        match session.confirm(wanted(ask)).await {
            Ok(true) => Ok(RenewOutcome::Renewed { until }),
            Ok(false) => Ok(RenewOutcome::Superseded),
            Err(problem) => Err(self.error(ask.key, problem)),
        }
    }

    async fn release(&self, key: &str, owner: &str) -> Result<ReleaseOutcome, LockError> {
        let released = self.release_once(Wanted { key, owner }).await;
        released.map_err(|problem| self.error(key, problem))
    }

    /// A session that was given up ends with its future, and the server frees what it was
    /// granted, also later: a request that still comes is followed by the end of its
    /// connection.
    async fn abandon(&self, _key: &str, owner: &str) -> Result<(), LockError> {
        self.held.lock().remove(owner);
        Ok(())
    }
}

#[async_trait]
impl<S: SessionServer> WaitLine for SessionBackend<S> {
    /// Waits at the server, which has a line for each lock. The place in it is lost every
    /// five seconds.
    async fn wait(&self, ask: Ask<'_>, last: &LastWord) -> Result<Grant, LockError> {
        let granted = async {
            // If nobody holds the lock, this is enough.
            if let Attempt::Granted(grant) = self.try_once(ask).await? {
                return Ok(grant);
            }
            loop {
                last.is_busy();
                if let Some(grant) = self.wait_once(ask).await? {
                    return Ok(grant);
                }
            }
        };
        let granted: Result<Grant, LockProblem> = granted.await;
        granted.map_err(|problem| self.error(ask.key, problem))
    }
}

fn wanted<'a>(ask: Ask<'a>) -> Wanted<'a> {
    let Ask { key, owner, .. } = ask;
    Wanted { key, owner }
}

fn shared_session() -> LockProblem {
    let words = "this session serves another client as well, so a pooler in between shares \
                 sessions; connect to the server itself, or pool whole sessions";
    LockProblem::Refused(words.to_owned())
}

/// Returns the number that stands for a key at the server: FNV-1a, so that every client has
/// the same. Two keys with one number only wait for each other.
pub(crate) fn number_of(key: &str) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in key.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_gives_a_key_the_same_number() {
        // The values that the authors of the hash give.
        assert_eq!(number_of(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(number_of("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(number_of("foobar"), 0x8594_4171_f739_67e8);
    }
}
