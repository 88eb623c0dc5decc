use super::PostgresSettings;
use super::connection::{self, PostgresConnection};
use super::failure::{is_missing, is_there_already, problem_of};
use super::server::Server;
use super::values::Parameter;
use crate::leftovers::Leftovers;
use crate::patience::Patience;
use crate::wakes::Wakes;
use crate::{Env, LockProblem};
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tokio_postgres::{Error, Row};

/// One connection to one server, opened at the first use and again after it broke.
///
/// All statements share it, so they reach the server in the order in which they were made.
/// That lets a release undo a grant that was abandoned. One statement without an answer
/// does not close it. Two in a row mean that nothing gets through any more.
pub(super) struct PostgresLink {
    server: Server,
    settings: PostgresSettings,
    node: String,
    /// What creates the tables that statements need.
    create: &'static str,
    requests: Counter,
    pub(super) leftovers: Leftovers<Open>,
    current: Mutex<Option<Arc<Open>>>,
    /// Held by the task that connects.
    connecting: tokio::sync::Mutex<()>,
}

/// A connection that is open.
pub(super) struct Open {
    connection: PostgresConnection,
    patience: Patience,
    unanswered_in_a_row: AtomicU32,
    /// The waiters for announcements on this connection.
    pub(super) wakes: Arc<Wakes>,
    listening: OnceCell<()>,
}

const UNANSWERED_IN_A_ROW_MAX: u32 = 2;
/// No network holds a request back for longer.
const HELD_BACK_MAX: Duration = Duration::from_secs(600);

impl PostgresLink {
    pub(super) fn new(
        address: &str,
        settings: PostgresSettings,
        env: Env,
        create: &'static str,
    ) -> Result<PostgresLink, LockProblem> {
        let server = Server::at(address, env)?;
        Ok(PostgresLink {
            node: server.node(),
            server,
            settings,
            create,
            requests: Counter::default(),
            leftovers: Leftovers::default(),
            current: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
        })
    }

    pub(super) fn node(&self) -> &str {
        &self.node
    }

    pub(super) fn env(&self) -> &Env {
        &self.server.env
    }

    pub(super) fn requests(&self) -> Counter {
        self.requests.clone()
    }

    /// Runs a statement on the open connection, or on a new one.
    pub(super) async fn run(
        &self,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, LockProblem> {
        let open = self.open().await?;
        self.run_on(&open, statement, parameters).await
    }

    /// Runs a statement. If its table is not there, creates the table and runs it again.
    pub(super) async fn run_on(
        &self,
        open: &Arc<Open>,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, LockProblem> {
        let request = || open.connection.query_typed(statement, parameters);
        match self.heard(open, request()).await {
            Some(Err(error)) if is_missing(&error) => {
                let created = self.heard(open, open.connection.batch_execute(self.create));
                match created.await {
                    Some(Err(error)) if is_there_already(&error) => {}
                    created => self.learned(open, created)?,
                }
                let again = self.heard(open, request()).await;
                self.learned(open, again)
            }
            answer => self.learned(open, answer),
        }
    }

    /// Has the server announce something on this connection from now on.
    pub(super) async fn listen(&self, open: &Arc<Open>, channel: &str) -> Result<(), LockProblem> {
        let listening = open.listening.get_or_try_init(async || {
            let listen = format!("LISTEN {channel}");
            let answer = self.heard(open, open.connection.batch_execute(&listen));
            self.learned(open, answer.await)
        });
        listening.await.copied()
    }

    /// Returns the open connection, or a new one.
    pub(super) async fn open(&self) -> Result<Arc<Open>, LockProblem> {
        if let Some(open) = self.usable() {
            return Ok(open);
        }
        // The time limit includes the wait for another task that is connecting.
        timeout(self.settings.connect_timeout, Box::pin(self.connect()))
            .await
            .map_err(|_| LockProblem::Unreachable("connecting took too long".to_owned()))?
    }

    async fn connect(&self) -> Result<Arc<Open>, LockProblem> {
        let _alone = self.connecting.lock().await;
        if let Some(open) = self.usable() {
            return Ok(open);
        }
        let wakes: Arc<Wakes> = Arc::default();
        let ears = Ears(wakes.clone());
        let within = self.settings.connect_timeout;
        let hears = move |word: tokio_postgres::Notification| {
            let Ears(wakes) = &ears;
            wakes.told(word.payload(), "");
        };
        let open = Arc::new(Open {
            connection: connection::open(&self.server, within, hears).await?,
            patience: Patience::new(self.env(), self.settings.response_timeout),
            unanswered_in_a_row: AtomicU32::new(0),
            wakes,
            listening: OnceCell::new(),
        });
        *self.current.lock() = Some(open.clone());
        Ok(open)
    }

    fn usable(&self) -> Option<Arc<Open>> {
        let current = self.current.lock().clone();
        current.filter(|open| !open.is_given_up())
    }

    /// Counts a request and awaits its answer. Returns `None` if none comes in time.
    async fn heard<T>(
        &self,
        open: &Arc<Open>,
        request: impl Future<Output = Result<T, Error>>,
    ) -> Option<Result<T, Error>> {
        self.requests.inc();
        let answer = open.patience.bound(request).await;
        if answer.is_none() {
            let before = open.unanswered_in_a_row.fetch_add(1, Ordering::Relaxed);
            if before + 1 >= UNANSWERED_IN_A_ROW_MAX {
                self.give_up(open);
            }
        }
        answer
    }

    /// Learns from an answer whether the connection is worth keeping.
    fn learned<T>(
        &self,
        open: &Arc<Open>,
        answer: Option<Result<T, Error>>,
    ) -> Result<T, LockProblem> {
        let Some(answer) = answer else {
            let limit_ms = open.patience.limit().as_millis();
            return Err(LockProblem::NoAnswer(format!("not within {limit_ms} ms")));
        };
        let answer = answer.map_err(problem_of);
        match &answer {
            Ok(_) => open.unanswered_in_a_row.store(0, Ordering::Relaxed),
            Err(LockProblem::Refused(_)) => {}
            Err(_) => self.give_up(open),
        }
        answer
    }

    /// Drops this connection, so that the next request opens another.
    fn give_up(&self, open: &Arc<Open>) {
        // Nothing would wake the waiters on it.
        open.wakes.end();
        let mut current = self.current.lock();
        if current.as_ref().is_some_and(|now| Arc::ptr_eq(now, open)) {
            *current = None;
        }
    }
}

impl Open {
    /// Returns whether new requests use another connection.
    fn is_given_up(&self) -> bool {
        self.wakes.are_over() || self.connection.is_closed()
    }

    /// Keeps the connection open until everything that was sent on it is answered.
    pub(super) async fn stay_open(self: Arc<Open>) {
        let _over = timeout(HELD_BACK_MAX, self.connection.batch_execute("")).await;
    }
}

/// The receiver of announcements: their text names what was freed. It is dropped with the
/// connection.
struct Ears(Arc<Wakes>);

impl Drop for Ears {
    fn drop(&mut self) {
        self.0.end();
    }
}
