use super::failure::connect_problem_of;
use super::server::Server;
#[cfg(feature = "servers")]
use crate::Env;
use crate::LockProblem;
use crate::task::Task;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, DriverError, Error, Row};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::DropGuard;

/// A connection that closes when it is dropped, also in the middle of a statement.
///
/// A task owns it, so a caller that stops waiting for an answer does not leave the answer for
/// the next one. Nobody reads it between two statements: that it ended shows at the next one.
pub struct MariadbConnection {
    statements: mpsc::Sender<Statement>,
    /// The number of its session at the server.
    id: u32,
    _driver: Task,
}

struct Statement {
    text: String,
    answer: oneshot::Sender<Result<Vec<Row>, Error>>,
}

const WAITING_STATEMENTS: usize = 8;

impl MariadbConnection {
    /// Runs a statement after those before it, and returns its rows.
    pub async fn ask(&self, text: impl Into<String>) -> Result<Vec<Row>, Error> {
        let (answer, answered) = oneshot::channel();
        let text = text.into();
        // Whoever does not take it drops it, and that ends the wait for its answer.
        let _or_closed = self.statements.send(Statement { text, answer }).await;
        answered.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Runs a statement that answers with one number.
    pub async fn number(&self, text: impl Into<String>) -> Result<Option<i64>, Error> {
        let rows = self.ask(text).await?;
        let first = rows.first().and_then(|row| row.get_opt(0));
        Ok(first.and_then(Result::ok))
    }

    pub(super) fn id(&self) -> u32 {
        self.id
    }

    pub(super) fn is_closed(&self) -> bool {
        self.statements.is_closed()
    }
}

fn closed() -> Error {
    DriverError::ConnectionClosed.into()
}

/// Connects to the server at this address; `within` is the time limit.
#[cfg(feature = "servers")]
pub async fn connect(address: &str, within: Duration) -> Result<MariadbConnection, LockProblem> {
    open(&Server::at(address, Env::default())?, within, None).await
}

/// Connects and authenticates. The guard is dropped when the connection has ended.
pub(super) async fn open(
    server: &Server,
    within: Duration,
    ended: Option<DropGuard>,
) -> Result<MariadbConnection, LockProblem> {
    if server.env.world().is_some() {
        let words = "mysql_async opens its connections itself, so no world can play them";
        return Err(LockProblem::Unreachable(words.to_owned()));
    }
    let connecting = timeout(within, Conn::new(server.opts.clone())).await;
    let too_late = |_| LockProblem::Unreachable("connecting took too long".to_owned());
    let mut connection = connecting.map_err(too_late)?.map_err(connect_problem_of)?;
    let id = connection.id();
    let (statements, mut waiting) = mpsc::channel::<Statement>(WAITING_STATEMENTS);
    let driver = async move {
        let _ended = ended;
        while let Some(Statement { text, answer }) = waiting.recv().await {
            let rows = connection.query(text).await;
            // Nobody may wait for it any more.
            let _ = answer.send(rows);
            if connection.is_disconnected() {
                return;
            }
        }
    };
    Ok(MariadbConnection {
        statements,
        id,
        _driver: server.env.spawn(driver),
    })
}
