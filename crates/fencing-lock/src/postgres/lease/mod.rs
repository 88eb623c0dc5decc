mod line;
mod undo;

use super::PostgresSettings;
use super::link::PostgresLink;
use super::values::{read, text};
use crate::leftovers::Request;
use crate::{
    Ask, Attempt, Env, FencingToken, Grant, LockBackend, LockError, LockProblem, ReleaseOutcome,
    RenewOutcome, Term, WaitLine,
};
use async_trait::async_trait;
use prometheus_client::metrics::counter::Counter;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// A lock that is a row of the table `fencing_locks` in a Postgres database.
///
/// One statement grants it and draws its token, which is a column that only grows. A row is
/// as durable as its server: with `synchronous_commit` on, which is the default, lock and
/// token survive a crash. A failover to a replica that lags loses both. Leases expire by
/// the server's clock.
pub struct PostgresLeaseBackend {
    link: Arc<PostgresLink>,
}

const NAME: &str = "postgres-lease";
/// Creates the table. It is run when the table is missing.
pub const CREATE: &str = include_str!("create.sql");
const ACQUIRE: &str = include_str!("acquire.sql");
const RENEW: &str = include_str!("renew.sql");

impl PostgresLeaseBackend {
    /// Takes `host:port` (user and database are then `postgres`), or a URL with user,
    /// password and database. It does not connect before the first use, so an unreachable
    /// server is not an error here.
    pub fn new(
        address: &str,
        settings: PostgresSettings,
    ) -> Result<PostgresLeaseBackend, LockError> {
        PostgresLeaseBackend::with_env(address, settings, Env::default())
    }

    /// Does the same in surroundings that somebody plays.
    pub fn with_env(
        address: &str,
        settings: PostgresSettings,
        env: Env,
    ) -> Result<PostgresLeaseBackend, LockError> {
        let link = PostgresLink::new(address, settings, env, CREATE);
        let shown = crate::without_password(address);
        let link = link.map_err(|problem| LockError::new(NAME, shown, "", problem))?;
        let link = Arc::new(link);
        Ok(PostgresLeaseBackend { link })
    }

    async fn try_once(&self, ask: Ask<'_>) -> Result<Attempt, LockProblem> {
        let open = self.link.open().await?;
        let asked = self.link.leftovers.asked(ask.owner, &open, Request::Try);
        // The lease counts from before the request was sent. The server starts its own
        // count later, so the holder gives up first.
        let asked_at = Instant::now();
        let ttl_ms = ms(ask.ttl);
        let parameters = [text(&ask.key), text(&ask.owner), (&ttl_ms as _, Type::INT8)];
        let rows = match self.link.run_on(&open, ACQUIRE, &parameters).await {
            Ok(rows) => rows,
            Err(problem) => {
                // What is refused is rolled back.
                if let LockProblem::Refused(_) = problem {
                    asked.settle();
                }
                return Err(problem);
            }
        };
        let attempt = match read_attempt(rows.first())? {
            Answer::Granted(token) => {
                let term = Term::Until(asked_at + ask.ttl);
                Attempt::Granted(Grant::new(token, asked_at, ask.ttl, term)?)
            }
            Answer::Busy { retry_in } => Attempt::Busy { retry_in },
        };
        asked.settle();
        Ok(attempt)
    }
}

#[async_trait]
impl LockBackend for PostgresLeaseBackend {
    fn name(&self) -> &'static str {
        NAME
    }

    fn node(&self) -> &str {
        self.link.node()
    }

    fn requests(&self) -> Counter {
        self.link.requests()
    }

    fn env(&self) -> &Env {
        self.link.env()
    }

    async fn try_acquire(&self, ask: Ask<'_>) -> Result<Attempt, LockError> {
        let attempt = self.try_once(ask).await;
        attempt.map_err(|problem| self.error(ask.key, problem))
    }

    fn line(&self) -> Option<&dyn WaitLine> {
        Some(self)
    }

    async fn renew(&self, ask: Ask<'_>) -> Result<RenewOutcome, LockError> {
        let ttl_ms = ms(ask.ttl);
        let parameters = [text(&ask.key), text(&ask.owner), (&ttl_ms as _, Type::INT8)];
        let until = Instant::now() + ask.ttl;
        let answer = self.link.run(RENEW, &parameters).await;
        answer
            .and_then(|rows| read::<i32>(rows.first()))
            .and_then(|number| match number {
                1 => Ok(RenewOutcome::Renewed { until }),
                0 => Ok(RenewOutcome::Expired),
                -1 => Ok(RenewOutcome::Superseded),
                _ => Err(LockProblem::BadAnswer(number.to_string())),
            })
            .map_err(|problem| self.error(ask.key, problem))
    }

    async fn release(&self, key: &str, owner: &str) -> Result<ReleaseOutcome, LockError> {
        let released = self.release_once(key, owner).await;
        released.map_err(|problem| self.error(key, problem))
    }

    async fn abandon(&self, key: &str, owner: &str) -> Result<(), LockError> {
        let undone = undo::undo(&self.link, key, owner).await;
        undone.map_err(|problem| self.error(key, problem))
    }
}

enum Answer {
    Granted(FencingToken),
    Busy { retry_in: Duration },
}

/// Reads what acquire.sql returns and explains.
fn read_attempt(row: Option<&Row>) -> Result<Answer, LockProblem> {
    let Some(row) = row else {
        let retry_in = Duration::ZERO;
        return Ok(Answer::Busy { retry_in });
    };
    let [token, left_ms] = [0, 1].map(|column| row.try_get::<_, Option<i64>>(column));
    let strange = |error: tokio_postgres::Error| LockProblem::BadAnswer(error.to_string());
    if let Some(token) = token.map_err(strange)? {
        let token = u64::try_from(token).map_err(|_| {
            LockProblem::BadAnswer(format!("{token} is no token; the table was changed"))
        })?;
        return Ok(Answer::Granted(FencingToken(token)));
    }
    let left_ms = left_ms.map_err(strange)?.unwrap_or(0).max(0);
    let retry_in = Duration::from_millis(left_ms.unsigned_abs());
    Ok(Answer::Busy { retry_in })
}

fn ms(ttl: Duration) -> i64 {
    i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX)
}
