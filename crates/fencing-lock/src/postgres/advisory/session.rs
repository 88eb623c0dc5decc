use super::super::PostgresSettings;
use super::super::connection::{self, PostgresConnection};
use super::super::failure::{is_missing, is_there_already, problem_of};
use super::super::server::Server;
use super::super::values::Parameter;
use crate::{Env, LockProblem};
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tokio_postgres::{Error, NoTls, Row};
use tokio_util::sync::{CancellationToken, DropGuard};

/// The sessions of this process at one server: one for each lock that is held or awaited,
/// and some that wait for their next lock.
pub(super) struct Sessions {
    server: Arc<Server>,
    settings: PostgresSettings,
    requests: Counter,
    idle: Arc<Mutex<Vec<Session>>>,
}

/// One session. The server ends it, with the lock that it holds, when it is dropped.
pub(super) struct Session {
    connection: PostgresConnection,
    /// Cancelled when the connection has ended, in any way.
    ended: CancellationToken,
    server: Arc<Server>,
    settings: PostgresSettings,
    requests: Counter,
}

/// A session in the middle of a statement that can take long. If it is dropped, the server
/// is told to stop as well: it would not look at its connection before the statement ends.
pub(super) struct Waiting(Option<Session>);

const CREATE: &str = include_str!("create.sql");
const IDLE_MAX: usize = 8;

impl Sessions {
    pub(super) fn new(server: Server, settings: PostgresSettings) -> Sessions {
        Sessions {
            server: Arc::new(server),
            settings,
            requests: Counter::default(),
            idle: Arc::default(),
        }
    }

    pub(super) fn env(&self) -> &Env {
        &self.server.env
    }

    pub(super) fn requests(&self) -> Counter {
        self.requests.clone()
    }

    /// Returns a session that nobody else uses.
    pub(super) async fn one(&self) -> Result<Session, LockProblem> {
        while let Some(session) = self.pop() {
            if !session.is_over() {
                return Ok(session);
            }
        }
        let ended = CancellationToken::new();
        let guard = ended.clone().drop_guard();
        let hears = move |_| drop_with_the_connection(&guard);
        let within = self.settings.connect_timeout;
        let connection = connection::open(&self.server, within, hears).await?;
        Ok(Session {
            connection,
            ended,
            server: self.server.clone(),
            settings: self.settings,
            requests: self.requests.clone(),
        })
    }

    /// Keeps a session that holds nothing for the next lock.
    pub(super) fn put_back(&self, session: Session) {
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX && !session.is_over() {
            idle.push(session);
        }
    }

    fn pop(&self) -> Option<Session> {
        self.idle.lock().pop()
    }
}

fn drop_with_the_connection(_guard: &DropGuard) {}

impl Session {
    pub(super) fn is_over(&self) -> bool {
        self.ended.is_cancelled() || self.connection.is_closed()
    }

    pub(super) fn env(&self) -> &Env {
        &self.server.env
    }

    pub(super) fn response_timeout(&self) -> Duration {
        self.settings.response_timeout
    }

    /// Completes when the connection has ended.
    pub(super) fn ended(&self) -> CancellationToken {
        self.ended.clone()
    }

    /// Runs a statement that the server answers at once.
    pub(super) async fn ask(
        &self,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Option<Row>, LockProblem> {
        self.ask_for(self.settings.response_timeout, statement, parameters)
            .await
            .map_err(Unanswered::problem)
    }

    /// Runs a statement that takes up to `within` at the server, and a moment more.
    pub(super) async fn ask_for(
        &self,
        within: Duration,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Option<Row>, Unanswered> {
        let request = || self.in_time(within, self.connection.query_typed(statement, parameters));
        let rows = match request().await {
            Err(Unanswered::Error(error)) if is_missing(&error) => {
                let within = self.settings.response_timeout;
                let created = self.in_time(within, self.connection.batch_execute(CREATE));
                match created.await {
                    Err(Unanswered::Error(error)) if is_there_already(&error) => {}
                    created => created?,
                }
                request().await
            }
            answer => answer,
        };
        Ok(rows?.into_iter().next())
    }

    async fn in_time<T>(
        &self,
        within: Duration,
        request: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Unanswered> {
        self.requests.inc();
        match timeout(within, request).await {
            Ok(answer) => answer.map_err(Unanswered::Error),
            Err(_) => Err(Unanswered::TooLate(within)),
        }
    }

    pub(super) fn waits(self) -> Waiting {
        Waiting(Some(self))
    }
}

/// The reason that a statement has no answer.
pub(super) enum Unanswered {
    Error(Error),
    TooLate(Duration),
}

impl Unanswered {
    pub(super) fn problem(self) -> LockProblem {
        match self {
            Unanswered::Error(error) => problem_of(error),
            Unanswered::TooLate(within) => {
                LockProblem::NoAnswer(format!("not within {} ms", within.as_millis()))
            }
        }
    }
}

impl Waiting {
    pub(super) fn session(&self) -> &Session {
        self.0.as_ref().expect("it is taken only once")
    }

    /// Returns the session, once its statement has ended.
    pub(super) fn over(mut self) -> Session {
        self.0.take().expect("it is taken only once")
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let Some(session) = self.0.take().filter(|session| !session.is_over()) else {
            return;
        };
        let env = session.env().clone();
        env.in_background(async move {
            let stop = async {
                let Server { host, port, .. } = &*session.server;
                let stream = session.env().dial(host, *port).await.ok()?;
                let token = session.connection.cancel_token();
                token.cancel_query_raw(stream, NoTls).await.ok()
            };
            // The end of the connection frees whatever it was granted meanwhile.
            let _best_effort = timeout(session.settings.connect_timeout, stop).await;
        });
    }
}
