//! The resource as tables of a Postgres. A worker writes to them itself: one statement compares
//! its token, sets the value and appends to the log.

mod rows;

use super::{ClientError, LONGEST_CONNECT, RowResult, Stored, WriteAnswer, bad_request, no_answer};
use crate::model::{Fence, FencingToken, LogRow, RowValue, without_password};
use crate::resource::limits::{MAX_BODY_BYTES, MAX_LOG_BYTES, key_problem};
use crate::resource::state::WriteRequest;
use fencing_lock::LockProblem;
use fencing_lock::servers::{PostgresConnection, connect_postgres, postgres_problem};
use futures_util::{Stream, TryStreamExt, stream};
use parking_lot::Mutex;
use reqwest::Url;
use rows::{Clock, ROWS, row_of};
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, timeout};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error, Notification, Row};

#[derive(Clone)]
pub struct PostgresClient {
    /// The address without the settings that are for this client.
    server: String,
    shown: String,
    fence: Fence,
    announces: bool,
    timeout: Duration,
    /// Each with the moment since when nobody has used it.
    idle: Arc<Mutex<Vec<(Instant, PostgresConnection)>>>,
    places: Arc<Semaphore>,
}

/// Each statement has a connection for itself. A server allows some hundred of them.
const MOST_CONNECTIONS: usize = 64;
/// A connection that was used within this time is not asked whether it still works.
const TRUSTED: Duration = Duration::from_millis(500);
/// The most rows that may be announced and not read yet. Whoever falls further behind has lost
/// the log.
const WAITING_ROWS: usize = 4096;
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
            timeout,
            idle: Arc::default(),
            places: Arc::new(Semaphore::new(MOST_CONNECTIONS)),
        })
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

    pub async fn put(&self, write: &WriteRequest) -> Result<WriteAnswer, ClientError> {
        let name = format!("the write to {}", write.key);
        let problem = key_problem(&write.key).or_else(|| self.write_problem(write));
        if let Some(message) = problem {
            return Err(bad_request(&name, message));
        }
        let number = |number: u64| i64::try_from(number).ok();
        let token = write.token.and_then(|token| number(token.0));
        let (seq, based_on) = (number(write.token_seq), write.based_on.and_then(number));
        let (body, fenced) = (write.body.as_ref(), self.fence == Fence::On);
        let parameters: [(&(dyn ToSql + Sync), Type); 8] = [
            (&write.key, Type::TEXT),
            (&body, Type::BYTEA),
            (&token, Type::INT8),
            (&seq, Type::INT8),
            (&write.owner, Type::TEXT),
            (&based_on, Type::INT8),
            (&fenced, Type::BOOL),
            (&self.announces, Type::BOOL),
        ];
        let statement =
            async |on: &PostgresConnection| on.query_typed_one(WRITE, &parameters).await;
        let row = self.on_a_connection(&name, statement).await?;
        answer_of(&row, write).map_err(|error| no_answer(&name, error.to_string()))
    }

    /// Returns what a writer is told before anything is sent.
    fn write_problem(&self, write: &WriteRequest) -> Option<String> {
        if self.fence == Fence::On && write.token.is_none() {
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
        let stored = row.map(|row| {
            let value: &[u8] = row.try_get(0)?;
            Ok(Stored {
                value: RowValue::from_bytes(value),
                max_fence: row.try_get::<_, Option<i64>>(1)?.map(token_of),
                position: unsigned(row.try_get(2)?),
            })
        });
        let stored = stored.transpose();
        stored.map_err(|error: Error| no_answer(&name, error.to_string()))
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
        let (send, announced) = mpsc::channel(WAITING_ROWS);
        let mut send = Some(send);
        let hears = move |word: Notification| {
            let position: Option<i64> = word.payload().parse().ok();
            let took = |send: &mpsc::Sender<i64>| {
                position.is_none_or(|position| send.try_send(position).is_ok())
            };
            send = send.take().filter(took);
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
            let Some(position) = announced.recv().await else {
                return Ok(None);
            };
            let one = format!("{ROWS} WHERE position = $1");
            let parameters: [(&(dyn ToSql + Sync), Type); 1] = [(&position, Type::INT8)];
            let row = connection.query_typed_one(&one, &parameters);
            let row = client.in_time(name, row).await?;
            let row = row_of(&row, clock).map_err(|error| no_answer(name, error))?;
            Ok(Some((row, state)))
        });
        Ok(futures_util::StreamExt::chain(so_far, later))
    }

    /// Carries out one request on a connection of its own. The connection is used again only if it
    /// was answered: a statement that was given up may still be under way on it.
    async fn on_a_connection<T>(
        &self,
        name: &str,
        ask: impl AsyncFnOnce(&PostgresConnection) -> Result<T, Error>,
    ) -> Result<T, ClientError> {
        let place = timeout(self.timeout, self.places.acquire()).await;
        let _place = place.map_err(|_| no_answer(name, "no connection was free in time"))?;
        let connection = match self.idle_connection().await {
            Some(idle) => idle,
            None => self.connect(name, |_| {}).await?,
        };
        let answer = self.in_time(name, ask(&connection)).await;
        if answer
            .as_ref()
            .err()
            .is_none_or(|error| !error.outcome_unknown())
        {
            self.idle.lock().push((Instant::now(), connection));
        }
        answer
    }

    /// Returns a connection that is there already. The end of one that nobody has used for a while
    /// may not have been noticed yet, above all by a process that was stopped.
    async fn idle_connection(&self) -> Option<PostgresConnection> {
        let (since, connection) = self.idle.lock().pop()?;
        let is_trusted = since.elapsed() < TRUSTED && !connection.is_closed();
        let works = is_trusted || {
            let checked = timeout(LONGEST_CONNECT, connection.check_connection()).await;
            matches!(checked, Ok(Ok(())))
        };
        if works {
            return Some(connection);
        }
        // The others are at least as old.
        self.idle.lock().clear();
        None
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

fn answer_of(row: &Row, write: &WriteRequest) -> Result<WriteAnswer, Error> {
    let (outcome, position, seen): (&str, i64, Option<i64>) =
        (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    Ok(match outcome {
        "rejected" => WriteAnswer::Rejected {
            seen: token_of(seen.unwrap_or_default()),
            got: write.token.unwrap_or(FencingToken(0)),
        },
        _ => WriteAnswer::Accepted {
            position: unsigned(position),
        },
    })
}

fn token_of(number: i64) -> FencingToken {
    FencingToken(unsigned(number))
}

/// No column here ever holds a number below 0.
fn unsigned(number: i64) -> u64 {
    number.unsigned_abs()
}
