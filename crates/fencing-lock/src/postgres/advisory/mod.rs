use super::PostgresSettings;
use super::connection::{self, PostgresConnection};
use super::failure::{is_missing, is_there_already, problem_of};
use super::server::Server;
use super::values::{Parameter, read, text};
use crate::sessions::{SessionBackend, SessionConnection, SessionServer, Taken, Wanted, number_of};
use crate::{Env, LockError, LockProblem, ReleaseOutcome, without_password};
use async_trait::async_trait;
use std::time::Duration;
use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Error, NoTls, Row};
use tokio_util::sync::DropGuard;

/// Advisory locks of a Postgres, each held by a session of its own until that ends.
pub type PostgresAdvisoryBackend = SessionBackend<AdvisoryServer>;

pub struct AdvisoryServer {
    server: Server,
    settings: PostgresSettings,
    checks: bool,
}

pub struct AdvisorySession {
    connection: PostgresConnection,
    /// Whether the session has to serve nobody else.
    checks: bool,
}

const NAME: &str = "postgres-advisory";
const CREATE: &str = include_str!("create.sql");
const TRY: &str = include_str!("try.sql");
const WAIT: &str = include_str!("wait.sql");
const CONFIRM: &str = include_str!("confirm.sql");
const RELEASE: &str = include_str!("release.sql");

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
        open(NAME, true, address, settings, env)
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
        open(name, false, address, settings, Env::default())
    }
}

fn open(
    name: &'static str,
    checks: bool,
    address: &str,
    settings: PostgresSettings,
    env: Env,
) -> Result<PostgresAdvisoryBackend, LockError> {
    let server = Server::at(address, env);
    let shown = || without_password(address);
    let server = server.map_err(|problem| LockError::new(name, shown(), "", problem))?;
    let node = server.node();
    let server = AdvisoryServer {
        server,
        settings,
        checks,
    };
    Ok(SessionBackend::of(name, node, server))
}

#[async_trait]
impl SessionServer for AdvisoryServer {
    type Connection = AdvisorySession;

    fn env(&self) -> &Env {
        &self.server.env
    }

    fn response_timeout(&self) -> Duration {
        self.settings.response_timeout
    }

    async fn connect(&self, ended: DropGuard) -> Result<AdvisorySession, LockProblem> {
        let hears = move |_| drop_with_the_connection(&ended);
        let within = self.settings.connect_timeout;
        Ok(AdvisorySession {
            connection: connection::open(&self.server, within, hears).await?,
            checks: self.checks,
        })
    }

    async fn stop(&self, session: &AdvisorySession) {
        let stop = async {
            let Server { host, port, .. } = &self.server;
            let stream = self.env().dial(host, *port).await.ok()?;
            let token = session.connection.cancel_token();
            token.cancel_query_raw(stream, NoTls).await.ok()
        };
        let _best_effort = timeout(self.settings.connect_timeout, stop).await;
    }
}

fn drop_with_the_connection(_guard: &DropGuard) {}

#[async_trait]
impl SessionConnection for AdvisorySession {
    fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }

    async fn take(&self, wanted: Wanted<'_>, wait: Duration) -> Result<Taken, LockProblem> {
        let number = number_of(wanted.key).cast_signed();
        let [number, owner, checks, key] = self.parameters(&number, &wanted);
        let row = if wait.is_zero() {
            self.ask(TRY, &[number, owner, checks, key]).await
        } else {
            let most = wait.as_millis().to_string();
            let most = most.as_str();
            self.ask(WAIT, &[number, owner, checks, key, text(&most)])
                .await
        };
        let row = match row {
            Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                return Ok(Taken::Busy);
            }
            Ok(None) => return Ok(Taken::Shared),
            row => row.map_err(problem_of)?,
        };
        match read::<i64>(row.as_ref())? {
            0 => Ok(Taken::Busy),
            -1 => Ok(Taken::Shared),
            token => match u64::try_from(token) {
                Ok(token) => Ok(Taken::Granted(token)),
                Err(_) => Err(LockProblem::BadAnswer(format!("{token} is no token"))),
            },
        }
    }

    async fn confirm(&self, wanted: Wanted<'_>) -> Result<bool, LockProblem> {
        let parameters = [text(&wanted.owner), (&self.checks as _, Type::BOOL)];
        let row = self.ask(CONFIRM, &parameters).await.map_err(problem_of)?;
        read(row.as_ref())
    }

    async fn release(&self, wanted: Wanted<'_>) -> Result<ReleaseOutcome, LockProblem> {
        let number = number_of(wanted.key).cast_signed();
        let parameters = self.parameters(&number, &wanted);
        let row = self.ask(RELEASE, &parameters).await.map_err(problem_of)?;
        match read::<i32>(row.as_ref())? {
            1 => Ok(ReleaseOutcome::Released),
            0 => Ok(ReleaseOutcome::Expired),
            -1 => Ok(ReleaseOutcome::Superseded),
            other => Err(LockProblem::BadAnswer(other.to_string())),
        }
    }
}

impl AdvisorySession {
    /// Runs a statement. If its sequence is not there, creates it and runs the statement again.
    async fn ask(
        &self,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Option<Row>, Error> {
        let request = || self.connection.query_typed(statement, parameters);
        let rows = match request().await {
            Err(error) if is_missing(&error) => {
                match self.connection.batch_execute(CREATE).await {
                    Err(error) if is_there_already(&error) => {}
                    created => created?,
                }
                request().await
            }
            answer => answer,
        };
        Ok(rows?.into_iter().next())
    }

    fn parameters<'a>(&'a self, number: &'a i64, wanted: &'a Wanted<'a>) -> [Parameter<'a>; 4] {
        let checks = (&self.checks as _, Type::BOOL);
        let number = (number as _, Type::INT8);
        [number, text(&wanted.owner), checks, text(&wanted.key)]
    }
}
