//! The resource as tables of a Postgres. A worker writes to them itself: one statement compares
//! its token, sets the value and appends to the log.

mod pool;
mod rows;
mod styled;

use super::{ClientError, LONGEST_CONNECT, RowResult, Stored, WriteAnswer, bad_request, no_answer};
use crate::model::{Fence, LogRow, WriteStyle, without_password};
use crate::resource::limits::{MAX_BODY_BYTES, MAX_LOG_BYTES, key_problem};
use crate::resource::state::WriteRequest;
use fencing_lock::LockProblem;
use fencing_lock::servers::{PostgresConnection, connect_postgres, postgres_problem};
use futures_util::{Stream, TryStreamExt, stream};
use parking_lot::Mutex;
use pool::{Pool, Session};
use reqwest::Url;
use rows::{Clock, ROWS, answer_of, row_of, stored_of};
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use styled::Begun;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error, Notification};

#[derive(Clone)]
pub struct PostgresClient {
    /// The address without the settings that are for this client.
    server: String,
    shown: String,
    fence: Fence,
    announces: bool,
    style: WriteStyle,
    /// The read that the next write belongs to.
    begun: Arc<Mutex<Option<Begun>>>,
    timeout: Duration,
    pool: Arc<Pool>,
}

/// The most announced rows that are read by one statement.
const ROWS_AT_ONCE: usize = 256;
/// Both are in the statement that writes.
const CHANNEL: &str = "fencepost_log";
const WRITE: &str = include_str!("write.sql");
const CREATE: &str = include_str!("create.sql");
const READ: &str = "SELECT value, token, position FROM fencepost_values WHERE key = $1";
const COLUMNS: &str = "SELECT table_name || '.' || column_name || ' ' || data_type \
    FROM information_schema.columns WHERE table_schema = current_schema() \
    AND table_name IN ('fencepost_values', 'fencepost_log') ORDER BY 1";

impl fmt::Debug for PostgresClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("PostgresClient");
        shown.field("server", &self.shown).finish_non_exhaustive()
    }
}

impl PostgresClient {
    /// Reads `postgres://user:password@host:port/database`, with `?fence=off` for writes that
    /// compare no tokens, and `announce=on` for writes that those who follow the log hear of.
    pub fn new(url: &str, timeout: Duration) -> Result<PostgresClient, ClientError> {
        let address = |reason: String| ClientError::Address {
            url: without_password(url),
            reason,
        };
        let mut server = Url::parse(url).map_err(|error| address(error.to_string()))?;
        let (mut fence, mut announces, mut others) = (Fence::On, false, Vec::new());
        for (name, value) in server.query_pairs() {
            let bad = |reason: &str| address(format!("{name}={value}: {reason}"));
            match name.as_ref() {
                "fence" => fence = value.parse().map_err(|_| bad("it is on or off"))?,
                "announce" => match value.as_ref() {
                    "on" => announces = true,
                    "off" => announces = false,
                    _ => return Err(bad("it is on or off")),
                },
                _ => others.push((name.into_owned(), value.into_owned())),
            }
        }
        server.set_query(None);
        if !others.is_empty() {
            server.query_pairs_mut().extend_pairs(others);
        }
        Ok(PostgresClient {
            server: server.to_string(),
            shown: without_password(url),
            fence,
            announces,
            style: WriteStyle::default(),
            begun: Arc::default(),
            timeout,
            pool: Arc::default(),
        })
    }

    pub fn with_style(self, style: WriteStyle) -> PostgresClient {
        PostgresClient { style, ..self }
    }

    fn is_fenced(&self) -> bool {
        self.fence == Fence::On
    }

    pub async fn prepare(&self) -> Result<(), ClientError> {
        let name = "CREATE TABLE fencepost_log";
        let create = async |on: &PostgresConnection| on.batch_execute(CREATE).await;
        self.on_a_connection(name, create).await?;
        let columns = async |on: &PostgresConnection| on.query_typed(COLUMNS, &[]).await;
        let columns = self.on_a_connection(name, columns).await?;
        let columns = columns.iter().map(|row| row.try_get::<_, String>(0));
        let columns: Vec<String> = columns.filter_map(Result::ok).collect();
        match rows::strange_column(&columns) {
            None => Ok(()),
            Some(what) => Err(ClientError::Refused {
                request: name.to_owned(),
                message: format!(
                    "{what}; somebody else made this table: rename it, or use another database or schema"
                ),
            }),
        }
    }

    async fn write(&self, write: &WriteRequest, fenced: bool) -> Result<WriteAnswer, ClientError> {
        let name = format!("the write to {}", write.key);
        let mut borrowed = self.borrow(&name).await?;
        let answer = self.write_on(write, fenced, &mut borrowed.session).await;
        self.give_back(borrowed, &answer);
        answer
    }

    async fn write_on(
        &self,
        write: &WriteRequest,
        fenced: bool,
        on: &mut Session,
    ) -> Result<WriteAnswer, ClientError> {
        let name = format!("the write to {}", write.key);
        let problem = key_problem(&write.key).or_else(|| self.write_problem(write));
        if let Some(message) = problem {
            return Err(bad_request(&name, message));
        }
        let number = |number: u64| i64::try_from(number).ok();
        let token = write.token.and_then(|token| number(token.0));
        let (seq, based_on) = (number(write.token_seq), write.based_on.and_then(number));
        let body = write.body.as_ref();
        let recognises = self.style != WriteStyle::RetryBlindly;
        let parameters: [(&(dyn ToSql + Sync), Type); 9] = [
            (&write.key, Type::TEXT),
            (&body, Type::BYTEA),
            (&token, Type::INT8),
            (&seq, Type::INT8),
            (&write.owner, Type::TEXT),
            (&based_on, Type::INT8),
            (&fenced, Type::BOOL),
            (&self.announces, Type::BOOL),
            (&recognises, Type::BOOL),
        ];
        let row = self.in_time(&name, on.write(&parameters)).await?;
        answer_of(&row, write).map_err(|error| no_answer(&name, error.to_string()))
    }

    /// Writes in a transaction that has read the row before others may write.
    pub async fn put_slowly(
        &self,
        write: &WriteRequest,
        begun: oneshot::Sender<()>,
        go: oneshot::Receiver<()>,
    ) -> Result<WriteAnswer, ClientError> {
        let name = format!("the slow write to {}", write.key);
        let mut session = Session::new(self.connect(&name, |_| {}).await?);
        self.in_time(&name, session.batch_execute("BEGIN")).await?;
        let key: [(&(dyn ToSql + Sync), Type); 1] = [(&write.key, Type::TEXT)];
        self.in_time(&name, session.query_typed_opt(READ, &key))
            .await?;
        let _ = begun.send(());
        // If nobody says so any more, its sender is gone too.
        let _ = go.await;
        let answer = self.write_on(write, self.is_fenced(), &mut session).await?;
        self.in_time(&name, session.batch_execute("COMMIT")).await?;
        Ok(answer)
    }

    /// Returns what a writer is told before anything is sent.
    fn write_problem(&self, write: &WriteRequest) -> Option<String> {
        if self.is_fenced() && write.token.is_none() {
            return Some("a write needs a token: the fence is on".to_owned());
        }
        if write.body.len() > MAX_BODY_BYTES {
            return Some(format!("a body has at most {MAX_BODY_BYTES} bytes"));
        }
        let numbers = [write.token.map(|token| token.0), Some(write.token_seq)];
        let too_large = numbers
            .into_iter()
            .flatten()
            .find(|&it| i64::try_from(it).is_err());
        too_large.map(|number| format!("{number} does not fit into a bigint"))
    }

    pub async fn get(&self, key: &str) -> Result<Option<Stored>, ClientError> {
        let name = format!("the read of {key}");
        if let Some(message) = key_problem(key) {
            return Err(bad_request(&name, message));
        }
        let read =
            async |on: &PostgresConnection| on.query_typed_opt(READ, &[(&key, Type::TEXT)]).await;
        let row = self.on_a_connection(&name, read).await?;
        let stored = row.map(|row| stored_of(&row)).transpose();
        stored.map_err(|error| no_answer(&name, error.to_string()))
    }

    pub async fn log(&self) -> Result<Vec<LogRow>, ClientError> {
        let name = "its log";
        let connection = self.connect(name, |_| {}).await?;
        let clock = self.in_time(name, Clock::read(&connection)).await?;
        let all = format!("{ROWS} ORDER BY position");
        let rows = connection.query_typed_raw::<&str, _>(&all, []);
        let mut rows = pin!(self.in_time(name, rows).await?);
        let (mut log, mut length) = (Vec::new(), 0);
        while let Some(row) = self.in_time(name, rows.try_next()).await? {
            let row = row_of(&row, &clock).map_err(|error| no_answer(name, error))?;
            length += row.key.len() + row.value.as_ref().map_or(0, |it| it.as_bytes().len());
            if length > MAX_LOG_BYTES {
                let reason = format!("it has more than {MAX_LOG_BYTES} bytes");
                return Err(no_answer(name, reason));
            }
            log.push(row);
        }
        // Two writers of different keys may read the clock in another order than they draw their
        // positions. A row was decided on before the next one was.
        let mut next_ns = u64::MAX;
        for row in log.iter_mut().rev() {
            row.at_ns = row.at_ns.min(next_ns);
            next_ns = row.at_ns;
        }
        Ok(log)
    }

    /// Returns every row of now, and every later one that is announced. The stream ends with its
    /// connection.
    pub async fn follow(
        &self,
    ) -> Result<impl Stream<Item = RowResult> + Send + use<>, ClientError> {
        let name = "its log, followed";
        // No row may be missing, however far behind its reader is: a position takes less memory
        // than the server needs for its row.
        let (send, announced) = mpsc::unbounded_channel();
        let hears = move |word: Notification| {
            let position = word.payload().parse::<i64>();
            // Nobody may read them any more.
            let _ = position.map(|position| send.send(position));
        };
        let connection = self.connect(name, hears).await?;
        let listen = format!("LISTEN {CHANNEL}");
        self.in_time(name, connection.batch_execute(&listen))
            .await?;
        // A row that is committed from here on is announced; those before are read now.
        let so_far = stream::iter(self.log().await?.into_iter().map(Ok));
        let clock = self.in_time(name, Clock::read(&connection)).await?;
        let client = self.clone();
        let state = (client, connection, clock, announced);
        let later = stream::try_unfold(state, move |mut state| async move {
            let (client, connection, clock, announced) = &mut state;
            let mut positions: Vec<i64> = Vec::new();
            if announced.recv_many(&mut positions, ROWS_AT_ONCE).await == 0 {
                return Ok(None);
            }
            let next =
                format!("{ROWS} WHERE position = ANY($1) ORDER BY array_position($1, position)");
            let parameters: [(&(dyn ToSql + Sync), Type); 1] = [(&positions, Type::INT8_ARRAY)];
            let rows = connection.query_typed(&next, &parameters);
            let rows = client.in_time(name, rows).await?;
            let row = |row| row_of(row, clock).map_err(|error| no_answer(name, error));
            let rows: Vec<RowResult> = rows.iter().map(row).collect();
            Ok::<_, ClientError>(Some((stream::iter(rows), state)))
        });
        let later = TryStreamExt::try_flatten(later);
        Ok(futures_util::StreamExt::chain(so_far, later))
    }

    /// Carries out one request on a connection of its own.
    async fn on_a_connection<T>(
        &self,
        name: &str,
        ask: impl AsyncFnOnce(&PostgresConnection) -> Result<T, Error>,
    ) -> Result<T, ClientError> {
        let borrowed = self.borrow(name).await?;
        let answer = self.in_time(name, ask(&borrowed.session)).await;
        self.give_back(borrowed, &answer);
        answer
    }

    async fn connect(
        &self,
        name: &str,
        hears: impl FnMut(Notification) + Send + 'static,
    ) -> Result<PostgresConnection, ClientError> {
        let within = self.timeout.min(LONGEST_CONNECT);
        let connected = connect_postgres(&self.server, within, hears).await;
        connected.map_err(|problem| self.failed(name, problem))
    }

    async fn in_time<T>(
        &self,
        name: &str,
        asking: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, ClientError> {
        let answer = timeout(self.timeout, asking).await;
        let answer = answer.map_err(|_| no_answer(name, "it did not come in time"))?;
        answer.map_err(|error| self.failed(name, postgres_problem(error)))
    }

    fn failed(&self, name: &str, problem: LockProblem) -> ClientError {
        match problem {
            LockProblem::Refused(message) => ClientError::Refused {
                request: name.to_owned(),
                message,
            },
            LockProblem::BadAddress { reason, .. } => ClientError::Address {
                url: self.shown.clone(),
                reason,
            },
            problem => no_answer(name, problem.to_string()),
        }
    }
}
