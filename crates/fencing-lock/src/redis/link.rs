use super::ears::Ears;
use super::lua;
use super::reply::{Numbers, Reply};
use super::request::Request;
use super::wire::Wire;
use super::{Lua, RedisSettings};
use crate::leftovers::Leftovers;
use crate::patience::Patience;
use crate::wakes::Wakes;
use crate::{Env, LockProblem, without_password};
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use redis::{
    Client, ErrorKind, IntoConnectionInfo, ProtocolVersion, RedisError, ServerErrorKind, Value,
};
#[cfg(feature = "unsafe-modes")]
use redis::{Cmd, FromRedisValue, from_redis_value};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::time::timeout;

/// One connection to one Redis, opened at the first use and again after it broke.
///
/// All requests share it, so they reach the server in the order in which they were made.
/// That lets a release undo a grant that was abandoned. One unanswered request does not
/// close it. Two unanswered requests in a row mean that nothing gets through any more.
pub(crate) struct RedisLink {
    client: Client,
    settings: RedisSettings,
    env: Env,
    node: String,
    requests: Counter,
    pub(super) leftovers: Leftovers<Open>,
    /// Held only briefly, because each request passes here.
    current: Mutex<Option<Arc<Open>>>,
    /// Held by the task that connects.
    connecting: tokio::sync::Mutex<()>,
}

/// A connection that is open.
pub(super) struct Open {
    pub(super) wire: Wire,
    patience: Patience,
    unanswered_in_a_row: AtomicU32,
    pub(super) numbers: Numbers,
    /// The waiters for messages on this connection. Messages come only with a policy that
    /// needs them.
    pub(super) wakes: Arc<Wakes>,
    /// The channel of hand-offs to the waiters on this connection. Each connection has
    /// its own channel: if a waiter's connection is gone, the server finds no listener.
    pub(super) hand_offs: String,
}

const UNANSWERED_IN_A_ROW_MAX: u32 = 2;

impl RedisLink {
    pub(crate) fn new(
        address: &str,
        settings: RedisSettings,
        env: Env,
        requests: Counter,
    ) -> Result<RedisLink, LockProblem> {
        let client = client(address)?;
        // The address as it was given may contain a password.
        let node = client.get_connection_info().addr().to_string();
        Ok(RedisLink {
            client: if settings.wait.listens() {
                hearing(&client).map_err(problem_of)?
            } else {
                client
            },
            settings,
            env,
            node,
            requests,
            leftovers: Leftovers::default(),
            current: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
        })
    }

    pub(crate) fn node(&self) -> &str {
        &self.node
    }

    pub(super) fn env(&self) -> &Env {
        &self.env
    }

    pub(super) fn requests(&self) -> Counter {
        self.requests.clone()
    }

    /// Runs a script on the open connection, or on a new one.
    pub(crate) async fn run(
        &self,
        script: &Lua,
        keys: &[String],
        arguments: &[&str],
    ) -> Result<Reply, LockProblem> {
        let open = self.open().await?;
        self.run_on(&open, script, keys, arguments).await
    }

    pub(super) async fn run_on(
        &self,
        open: &Arc<Open>,
        script: &Lua,
        keys: &[String],
        arguments: &[&str],
    ) -> Result<Reply, LockProblem> {
        let number = open.numbers.next();
        let by_hash = script.by_hash(keys, arguments, number);
        match self.heard(open, open.wire.ask(&by_hash)).await {
            // As `Lua::run` does, but each of the two is a request that is counted and has
            // its own time.
            Some(Err(error)) if lua::is_unknown(&error) => {
                // This is rare, so the box keeps its size out of all other requests.
                Box::pin(self.run_whole_on(open, script, keys, arguments)).await
            }
            answer => self.learned_from(open, answer, number),
        }
    }

    /// Runs a script that the server may not know.
    pub(super) async fn run_whole_on(
        &self,
        open: &Arc<Open>,
        script: &Lua,
        keys: &[String],
        arguments: &[&str],
    ) -> Result<Reply, LockProblem> {
        let number = open.numbers.next();
        let whole = script.whole(keys, arguments, number);
        let answer = self.heard(open, open.wire.ask(&whole)).await;
        self.learned_from(open, answer, number)
    }

    #[cfg(feature = "unsafe-modes")]
    /// Runs one plain command.
    pub(super) async fn query<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, LockProblem> {
        let open = self.open().await?;
        let request = Request::packed(command);
        let answer = self.noted(&open, open.wire.ask(&request)).await?;
        from_redis_value(answer).map_err(|error| problem_of(error.into()))
    }

    pub(super) async fn subscribe(&self, open: &Arc<Open>, to: &str) -> Result<(), LockProblem> {
        let request = Request::of(&["SUBSCRIBE", to]);
        self.noted(open, open.wire.ask(&request)).await.map(|_| ())
    }

    pub(super) async fn unsubscribe(&self, open: &Arc<Open>, to: &str) -> Result<(), LockProblem> {
        let request = Request::of(&["UNSUBSCRIBE", to]);
        self.noted(open, open.wire.ask(&request)).await.map(|_| ())
    }

    /// Returns the open connection, or a new one.
    pub(super) async fn open(&self) -> Result<Arc<Open>, LockProblem> {
        if let Some(open) = self.usable() {
            return Ok(open);
        }
        // The box keeps the state of connecting out of every request's future, which
        // would be allocated with each request.
        let connecting = Box::pin(self.connect());
        // The time limit includes the wait for another task that is connecting.
        timeout(self.settings.connect_timeout, connecting)
            .await
            .map_err(|_| LockProblem::Unreachable("connecting took too long".to_owned()))?
    }

    async fn connect(&self) -> Result<Arc<Open>, LockProblem> {
        let _alone = self.connecting.lock().await;
        if let Some(open) = self.usable() {
            return Ok(open);
        }
        let wakes = Arc::new(Wakes::default());
        // With a name of this length, Redis looks waiters up in a table; with a short
        // one, it would pack small lines and search them.
        let name = self.env.uuid();
        let hand_offs = format!("fencepost:hand-offs:{name}");
        let ears = self.settings.wait.listens().then(|| Ears {
            wakes: wakes.clone(),
            hand_offs: hand_offs.clone(),
        });
        let opening = Wire::open(&self.env, &self.client, ears);
        let wire = opening.await.map_err(connect_problem_of)?;
        if self.settings.wait.is_in_order() {
            // This comes before anybody can wait in a line on this connection, so no
            // hand-off to it is ever missed.
            let subscribed = wire.ask(&Request::of(&["SUBSCRIBE", &hand_offs])).await;
            subscribed.map_err(connect_problem_of)?;
        }
        let open = Arc::new(Open {
            wire,
            patience: Patience::new(&self.env, self.settings.response_timeout),
            unanswered_in_a_row: AtomicU32::new(0),
            numbers: Numbers::of(name),
            wakes,
            hand_offs,
        });
        *self.current.lock() = Some(open.clone());
        Ok(open)
    }

    fn usable(&self) -> Option<Arc<Open>> {
        let current = self.current.lock().clone();
        current.filter(|open| !open.is_given_up())
    }

    async fn noted(
        &self,
        open: &Arc<Open>,
        request: impl Future<Output = Result<Value, RedisError>>,
    ) -> Result<Value, LockProblem> {
        let answer = self.heard(open, request).await;
        self.learned(open, answer)
    }

    /// Counts a request and awaits its answer. Returns `None` if none comes in time.
    pub(super) async fn heard<T>(
        &self,
        open: &Arc<Open>,
        request: impl Future<Output = Result<T, RedisError>>,
    ) -> Option<Result<T, RedisError>> {
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
    pub(super) fn learned<T>(
        &self,
        open: &Arc<Open>,
        answer: Option<Result<T, RedisError>>,
    ) -> Result<T, LockProblem> {
        let Some(answer) = answer else {
            let limit_ms = open.patience.limit().as_millis();
            return Err(LockProblem::NoAnswer(format!("not within {limit_ms} ms")));
        };
        match &answer {
            Ok(_) => open.unanswered_in_a_row.store(0, Ordering::Relaxed),
            Err(error) if answered(error) => {}
            Err(_) => self.give_up(open),
        }
        answer.map_err(problem_of)
    }

    /// The same for the answer of a script. One that belongs to another request shows that
    /// no later answer can be relied on.
    fn learned_from(
        &self,
        open: &Arc<Open>,
        answer: Option<Result<Value, RedisError>>,
        number: u64,
    ) -> Result<Reply, LockProblem> {
        let read = |answer| Reply::read(answer, number);
        self.learned(open, answer.map(|answer| answer.and_then(read)))
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
    pub(super) fn is_given_up(&self) -> bool {
        self.wakes.are_over()
    }
}

/// Makes a client that uses version 3 of the protocol, in which a connection that sends
/// requests also receives published messages.
fn hearing(client: &Client) -> Result<Client, RedisError> {
    let info = client
        .get_connection_info()
        .clone()
        .into_connection_info()?;
    let settings = info.redis_settings().clone();
    Client::open(info.set_redis_settings(settings.set_protocol(ProtocolVersion::RESP3)))
}

/// Makes a client for `host:port` or a Redis URL.
pub fn client(address: &str) -> Result<Client, LockProblem> {
    let url = if address.contains("://") {
        address.to_owned()
    } else {
        format!("redis://{address}")
    };
    Client::open(url).map_err(|error| LockProblem::BadAddress {
        address: without_password(address),
        reason: error.to_string(),
    })
}

/// Returns whether the server itself sent this error, so that the connection stays
/// usable.
pub(super) fn answered(error: &RedisError) -> bool {
    matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension)
}

pub fn problem_of(error: RedisError) -> LockProblem {
    match error.kind() {
        ErrorKind::Parse | ErrorKind::UnexpectedReturnType => bad_answer(&error),
        _ if answered(&error) => LockProblem::Refused(error.to_string()),
        _ => LockProblem::NoAnswer(error.to_string()),
    }
}

/// Joins a parser's error into one line: it has one for each alternative that the parser
/// tried.
fn bad_answer(error: &RedisError) -> LockProblem {
    let words = error.to_string();
    let words: Vec<&str> = words.split_whitespace().collect();
    LockProblem::BadAnswer(words.join(" "))
}

pub fn connect_problem_of(error: RedisError) -> LockProblem {
    match error.kind() {
        ErrorKind::Parse | ErrorKind::UnexpectedReturnType => bad_answer(&error),
        // It lets everybody in when it has read its data.
        ErrorKind::Server(ServerErrorKind::BusyLoading) => {
            LockProblem::Unreachable(error.to_string())
        }
        ErrorKind::AuthenticationFailed => LockProblem::Refused(error.to_string()),
        _ if answered(&error) => LockProblem::Refused(error.to_string()),
        _ => LockProblem::Unreachable(error.to_string()),
    }
}
