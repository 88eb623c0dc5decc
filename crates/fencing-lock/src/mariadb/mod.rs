//! The locks that sessions of a MariaDB hold: GET_LOCK and RELEASE_LOCK.
//!
//! mysql_async opens its connections itself, so they do not come from an [`Env`], and a world
//! cannot play them.

mod connection;
mod failure;
mod server;
mod settings;

pub use connection::MariadbConnection;
#[cfg(feature = "servers")]
pub use connection::connect;
pub use failure::problem_of;
pub use settings::MariadbSettings;

use crate::sessions::{SessionBackend, SessionConnection, SessionServer, Taken, Wanted, number_of};
use crate::{Env, LockError, LockProblem, ReleaseOutcome, without_password};
use async_trait::async_trait;
use failure::{FOREIGN_TABLE, NOT_A_REPLICA, is_missing};
use mysql_async::Error;
use parking_lot::Mutex;
use server::Server;
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::sync::DropGuard;

/// Locks of a MariaDB, each held by a session of its own until that ends.
pub type MariadbBackend = SessionBackend<MariadbServer>;

pub struct MariadbServer {
    server: Server,
    settings: MariadbSettings,
}

pub struct MariadbSession {
    connection: MariadbConnection,
    database: String,
    silent_max: Duration,
    /// The owner of the latest request for a lock.
    asked_by: Mutex<String>,
}

const NAME: &str = "mariadb";
/// What creates the table of tokens.
pub const CREATE: &str = include_str!("create.sql");
const TAKE: &str = include_str!("take.sql");
const CONFIRM: &str = include_str!("confirm.sql");
const RELEASE: &str = include_str!("release.sql");
const STOP: &str = include_str!("stop.sql");

impl MariadbBackend {
    /// Takes `host:port`, or a URL: `mariadb://user:password@host:port/database`. User and
    /// database are `fencing_lock` unless it names others. It does not connect before the
    /// first use.
    pub fn new(address: &str, settings: MariadbSettings) -> Result<MariadbBackend, LockError> {
        open(NAME, address, settings)
    }

    /// The lock as most libraries have it: nobody looks at its session while it is held. It
    /// exists for the scenario that shows what a short `wait_timeout` does to it.
    #[cfg(feature = "unsafe-modes")]
    pub fn new_without_ping(
        address: &str,
        settings: MariadbSettings,
    ) -> Result<MariadbBackend, LockError> {
        let backend = open("mariadb-without-ping", address, settings)?;
        Ok(backend.without_confirmations())
    }
}

fn open(
    name: &'static str,
    address: &str,
    settings: MariadbSettings,
) -> Result<MariadbBackend, LockError> {
    let server = Server::at(address, Env::default());
    let shown = || without_password(address);
    let server = server.map_err(|problem| LockError::new(name, shown(), "", problem))?;
    let node = server.node();
    let server = MariadbServer { server, settings };
    Ok(SessionBackend::of(name, node, server))
}

#[async_trait]
impl SessionServer for MariadbServer {
    type Connection = MariadbSession;

    fn env(&self) -> &Env {
        &self.server.env
    }

    fn response_timeout(&self) -> Duration {
        self.settings.response_timeout
    }

    async fn connect(&self, ended: DropGuard) -> Result<MariadbSession, LockProblem> {
        let connecting = async {
            let within = self.settings.connect_timeout;
            let connection = connection::open(&self.server, within, Some(ended)).await?;
            let silent_max = connection.number("SELECT @@wait_timeout").await;
            let silent_max = silent_max.map_err(failure::connect_problem_of)?;
            let silent_max = silent_max.and_then(|seconds| u64::try_from(seconds).ok());
            Ok(MariadbSession {
                connection,
                database: self.server.database().to_owned(),
                silent_max: Duration::from_secs(silent_max.unwrap_or(u64::MAX)),
                asked_by: Mutex::default(),
            })
        };
        let too_late = |_| {
            let words = "connecting took too long";
            Err(LockProblem::Unreachable(words.to_owned()))
        };
        let connected = timeout(self.settings.connect_timeout, connecting).await;
        connected.unwrap_or_else(too_late)
    }

    async fn stop(&self, session: &MariadbSession) {
        let within = self.settings.connect_timeout;
        let stop = async {
            let other = connection::open(&self.server, within, None).await.ok()?;
            let owner = hex_digits(&session.asked_by.lock());
            let stop = STOP.replace(":session", &session.connection.id().to_string());
            other
                .ask(stop.replace(":owner", &format!("'{owner}'")))
                .await
                .ok()
        };
        let _best_effort = timeout(within, stop).await;
    }
}

#[async_trait]
impl SessionConnection for MariadbSession {
    fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }

    fn silent_max(&self) -> Duration {
        self.silent_max
    }

    async fn take(&self, wanted: Wanted<'_>, wait: Duration) -> Result<Taken, LockProblem> {
        wanted.owner.clone_into(&mut self.asked_by.lock());
        let take = self.filled(TAKE, wanted);
        let take = take.replace(":wait", &wait.as_secs_f64().to_string());
        let token = match self.connection.number(&*take).await {
            Err(error) if is_missing(&error) => {
                self.connection.ask(CREATE).await.map_err(problem_of)?;
                self.connection.number(take).await
            }
            token => token,
        };
        match token.map_err(problem_of)? {
            Some(0) => Ok(Taken::Busy),
            Some(-1) => Ok(Taken::Shared),
            Some(-2) => refused("the server is read-only", NOT_A_REPLICA),
            Some(-3) => refused(
                "fencing_lock_tokens has two rows for one key",
                FOREIGN_TABLE,
            ),
            Some(token @ 1..) => Ok(Taken::Granted(token.cast_unsigned())),
            other => Err(LockProblem::BadAnswer(format!("{other:?} is no token"))),
        }
    }

    async fn confirm(&self, wanted: Wanted<'_>) -> Result<bool, LockProblem> {
        Ok(self.ask(CONFIRM, wanted).await? == 1)
    }

    async fn release(&self, wanted: Wanted<'_>) -> Result<ReleaseOutcome, LockProblem> {
        match self.ask(RELEASE, wanted).await? {
            1 => Ok(ReleaseOutcome::Released),
            0 => Ok(ReleaseOutcome::Expired),
            -1 => Ok(ReleaseOutcome::Superseded),
            other => Err(LockProblem::BadAnswer(other.to_string())),
        }
    }
}

impl MariadbSession {
    async fn ask(&self, statement: &str, wanted: Wanted<'_>) -> Result<i64, LockProblem> {
        let answer: Result<Option<i64>, Error> =
            self.connection.number(self.filled(statement, wanted)).await;
        let answer = answer.map_err(problem_of)?;
        answer.ok_or_else(|| LockProblem::BadAnswer("no number".to_owned()))
    }

    /// Fills the values into a statement, in hexadecimal: they need no quotes then.
    ///
    /// A name of a lock has at most 64 characters, belongs to the whole server, and does not
    /// tell upper from lower case, so it is a hash of the database and the key.
    fn filled(&self, statement: &str, wanted: Wanted<'_>) -> String {
        let number = number_of(&format!("{}/{}", self.database, wanted.key));
        statement
            .replace(":name", &format!("'fencing_lock:{number:016x}'"))
            .replace(":key", &format!("x'{}'", hex_digits(wanted.key)))
            .replace(":owner", &format!("x'{}'", hex_digits(wanted.owner)))
    }
}

fn refused<T>(what: &str, remedy: &str) -> Result<T, LockProblem> {
    Err(LockProblem::Refused(format!("{what}{remedy}")))
}

fn hex_digits(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}
