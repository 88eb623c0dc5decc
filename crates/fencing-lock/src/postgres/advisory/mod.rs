mod keeper;
mod session;

use super::PostgresSettings;
use super::server::Server;
use super::values::{Parameter, read, text};
use crate::task::Task;
use crate::{
    Ask, Attempt, Belief, Env, FencingToken, Grant, LastWord, LockBackend, LockError, LockProblem,
    ReleaseOutcome, RenewOutcome, Term, WaitLine, without_password,
};
use async_trait::async_trait;
use keeper::{Keeper, confirm};
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use session::{Session, Sessions, Unanswered};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

/// An advisory lock of a Postgres, held by a session of its own until that ends.
///
/// The server knows no TTL: it frees the lock when the session ends, and does not end a
/// session whose client only stands still. The TTL is for the holder: it stops to believe
/// in its lock when its session was not confirmed for so long, or has ended.
pub struct PostgresAdvisoryBackend {
    sessions: Sessions,
    name: &'static str,
    node: String,
    checks: bool,
    held: Mutex<BTreeMap<String, Held>>,
}

struct Held {
    session: Arc<Session>,
    _keeper: Task,
}

const NAME: &str = "postgres-advisory";
const TRY: &str = include_str!("try.sql");
const WAIT: &str = include_str!("wait.sql");
const CONFIRM: &str = include_str!("confirm.sql");
const RELEASE: &str = include_str!("release.sql");
/// How long the server lets somebody wait in one statement. A client that is cut off
/// learns of it then.
const WAIT_MAX: Duration = Duration::from_secs(5);

impl PostgresAdvisoryBackend {
    /// Takes an address as [`PostgresLeaseBackend`](crate::PostgresLeaseBackend) does. It
    /// does not connect before the first use.
    pub fn new(
        address: &str,
        settings: PostgresSettings,
    ) -> Result<PostgresAdvisoryBackend, LockError> {
        PostgresAdvisoryBackend::with_env(address, settings, Env::default())
    }

    /// Does the same in surroundings that somebody plays.
    pub fn with_env(
        address: &str,
        settings: PostgresSettings,
        env: Env,
    ) -> Result<PostgresAdvisoryBackend, LockError> {
        PostgresAdvisoryBackend::named(NAME, true, address, settings, env)
    }

    /// The lock as most libraries have it: it does not check whether its session serves
    /// another client as well. It exists for the scenario that shows what a pooler does to
    /// it.
    #[cfg(feature = "unsafe-modes")]
    pub fn new_unchecked(
        address: &str,
        settings: PostgresSettings,
    ) -> Result<PostgresAdvisoryBackend, LockError> {
        let name = "postgres-advisory-unchecked";
        PostgresAdvisoryBackend::named(name, false, address, settings, Env::default())
    }

    fn named(
        name: &'static str,
        checks: bool,
        address: &str,
        settings: PostgresSettings,
        env: Env,
    ) -> Result<PostgresAdvisoryBackend, LockError> {
        let shown = without_password(address);
        let server = Server::at(address, env);
        let server = server.map_err(|problem| LockError::new(name, shown, "", problem))?;
        Ok(PostgresAdvisoryBackend {
            name,
            node: server.node(),
            sessions: Sessions::new(server, settings),
            checks,
            held: Mutex::default(),
        })
    }

    async fn try_once(&self, ask: Ask<'_>) -> Result<Attempt, LockProblem> {
        // Whatever ends this early drops the session, and the server frees what it holds.
        let session = self.sessions.one().await?;
        let number = number_of(ask.key);
        let parameters = self.parameters(&number, &ask.owner, &ask.key);
        let asked_at = Instant::now();
        let row = session.ask(TRY, &parameters).await?;
        match read::<i64>(row.as_ref())? {
            0 => {
                self.sessions.put_back(session);
                let retry_in = Duration::MAX;
                Ok(Attempt::Busy { retry_in })
            }
            -1 => Err(shared_session()),
            token => self
                .granted(session, token, asked_at, ask)
                .map(Attempt::Granted),
        }
    }

    async fn wait_once(&self, ask: Ask<'_>) -> Result<Option<Grant>, LockProblem> {
        let waiting = self.sessions.one().await?.waits();
        let number = number_of(ask.key);
        let most = WAIT_MAX.as_millis().to_string();
        let most = most.as_str();
        let [number, owner, checks, key] = self.parameters(&number, &ask.owner, &ask.key);
        let parameters = [number, owner, checks, key, text(&most)];
        let session = waiting.session();
        let within = WAIT_MAX + session.response_timeout();
        let answer = session.ask_for(within, WAIT, &parameters).await;
        let row = match answer {
            Err(Unanswered::Error(error))
                if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) =>
            {
                // The limit is for the whole statement, so the session may hold the lock: it
                // ends here.
                drop(waiting.over());
                return Ok(None);
            }
            answer => answer.map_err(Unanswered::problem)?,
        };
        let session = waiting.over();
        let Some(row) = row else {
            return Err(shared_session());
        };
        let token = read(Some(&row))?;
        // It may have been granted long ago, if this process stood still. So it counts from
        // a question that is younger than the grant.
        let asked_at = Instant::now();
        if !confirm(&session, ask.owner, self.checks).await? {
            return Err(shared_session());
        }
        self.granted(session, token, asked_at, ask).map(Some)
    }

    fn granted(
        &self,
        session: Session,
        token: i64,
        asked_at: Instant,
        ask: Ask<'_>,
    ) -> Result<Grant, LockProblem> {
        let strange = |_| LockProblem::BadAnswer(format!("{token} is no token"));
        let token = FencingToken(u64::try_from(token).map_err(strange)?);
        let belief = watch::Sender::new(Belief::until(asked_at + ask.ttl));
        let term = Term::Session(belief.subscribe());
        let grant = Grant::new(token, asked_at, ask.ttl, term)?;
        let session = Arc::new(session);
        let keeper = Keeper {
            session: session.clone(),
            owner: ask.owner.to_owned(),
            ttl: ask.ttl,
            checks: self.checks,
            belief,
        };
        let held = Held {
            session,
            _keeper: self.env().spawn(keeper.keep()),
        };
        self.held.lock().insert(ask.owner.to_owned(), held);
        Ok(grant)
    }

    async fn release_once(&self, key: &str, owner: &str) -> Result<ReleaseOutcome, LockProblem> {
        let Some(held) = self.held.lock().remove(owner) else {
            return Err(LockProblem::NoAnswer("its session is over".to_owned()));
        };
        let session = held.session.clone();
        // The keeper ends before the session is used for something else.
        drop(held);
        let number = number_of(key);
        let parameters = self.parameters(&number, &owner, &key);
        // Without an answer the session is dropped, and the server frees the lock with it.
        let row = session.ask(RELEASE, &parameters).await?;
        let outcome = match read::<i32>(row.as_ref())? {
            1 => ReleaseOutcome::Released,
            0 => ReleaseOutcome::Expired,
            -1 => ReleaseOutcome::Superseded,
            other => return Err(LockProblem::BadAnswer(other.to_string())),
        };
        if let (ReleaseOutcome::Released, Some(session)) = (outcome, Arc::into_inner(session)) {
            self.sessions.put_back(session);
        }
        Ok(outcome)
    }

    fn parameters<'a>(
        &'a self,
        number: &'a i64,
        owner: &'a &'a str,
        key: &'a &'a str,
    ) -> [Parameter<'a>; 4] {
        let checks = (&self.checks as _, Type::BOOL);
        [(number as _, Type::INT8), text(owner), checks, text(key)]
    }
}

#[async_trait]
impl LockBackend for PostgresAdvisoryBackend {
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
        match confirm(&session, ask.owner, self.checks).await {
            Ok(true) => Ok(RenewOutcome::Renewed { until }),
            Ok(false) => Ok(RenewOutcome::Superseded),
            Err(problem) => Err(self.error(ask.key, problem)),
        }
    }

    async fn release(&self, key: &str, owner: &str) -> Result<ReleaseOutcome, LockError> {
        let released = self.release_once(key, owner).await;
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
impl WaitLine for PostgresAdvisoryBackend {
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

fn shared_session() -> LockProblem {
    let words = "this session serves another client as well, so a pooler in between shares \
                 sessions; connect to the server itself, or pool whole sessions";
    LockProblem::Refused(words.to_owned())
}

/// Returns the number that stands for a key at the server: FNV-1a, so that every client has
/// the same. Two keys with one number only wait for each other.
fn number_of(key: &str) -> i64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in key.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash.cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_gives_a_key_the_same_number() {
        // The values that the authors of the hash give.
        assert_eq!(number_of("").cast_unsigned(), 0xcbf2_9ce4_8422_2325);
        assert_eq!(number_of("a").cast_unsigned(), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(number_of("foobar").cast_unsigned(), 0x8594_4171_f739_67e8);
    }
}
