use super::patience::Patience;
use super::wakes::{Ears, Wakes};
use super::{Lua, RedisSettings};
use crate::bounded::redis::{self as bounded, RedisConnection};
use crate::dlock::LockProblem;
use crate::model::{WaitPolicy, without_password};
use prometheus_client::metrics::counter::Counter;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ErrorKind, FromRedisValue, IntoConnectionInfo,
    ProtocolVersion, RedisError, ServerErrorKind,
};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time::timeout;
use uuid::Uuid;

/// One connection to one Redis, opened at the first use and again after it broke.
///
/// All requests share it, so they reach the server in the order in which they
/// were made; that is what lets a release undo a grant that was abandoned. For
/// the same reason one unanswered request does not close it: the release that
/// follows must go the same way, or a late grant would land after it. Two in a
/// row mean that nothing comes through any more.
pub(in crate::dlock) struct RedisLink {
    client: Client,
    settings: RedisSettings,
    node: String,
    requests: Counter,
    /// Held for a moment only: each request passes here.
    current: Mutex<Option<Arc<Open>>>,
    /// Held by the one who connects.
    connecting: tokio::sync::Mutex<()>,
}

/// A connection while it lasts.
pub(super) struct Open {
    connection: RedisConnection,
    patience: Patience,
    unanswered_in_a_row: AtomicU32,
    /// Who waits for a word on this connection. Without a policy that needs
    /// it, no word comes.
    pub(super) wakes: Arc<Wakes>,
    /// The channel of hand-offs to those who wait on this connection. Each
    /// connection has its own: with a waiter whose connection is gone, the
    /// server finds nobody listening.
    pub(super) hand_offs: String,
}

const UNANSWERED_IN_A_ROW_MAX: u32 = 2;

impl RedisLink {
    pub(in crate::dlock) fn new(
        address: &str,
        settings: RedisSettings,
        requests: Counter,
    ) -> Result<RedisLink, LockProblem> {
        let client = client(address)?;
        // Not the address as it was given: that may hold a password.
        let node = client.get_connection_info().addr().to_string();
        Ok(RedisLink {
            client: match settings.wait {
                WaitPolicy::Spin => client,
                WaitPolicy::Notify | WaitPolicy::Queue => hearing(&client).map_err(problem_of)?,
            },
            settings,
            node,
            requests,
            current: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
        })
    }

    pub(in crate::dlock) fn node(&self) -> &str {
        &self.node
    }

    pub(super) fn requests(&self) -> Counter {
        self.requests.clone()
    }

    /// Runs a script on the connection that is open, or on a new one.
    pub(in crate::dlock) async fn run<T: FromRedisValue>(
        &self,
        script: &Lua,
        keys: &[String],
        arguments: &[&str],
    ) -> Result<T, LockProblem> {
        let open = self.open().await?;
        self.run_on(&open, script, keys, arguments).await
    }

    pub(super) async fn run_on<T: FromRedisValue>(
        &self,
        open: &Arc<Open>,
        script: &Lua,
        keys: &[String],
        arguments: &[&str],
    ) -> Result<T, LockProblem> {
        let mut connection = open.connection.clone();
        let request = script.run(&mut connection, keys, arguments);
        self.noted(open, request).await
    }

    /// One plain command.
    pub(super) async fn query<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, LockProblem> {
        let open = self.open().await?;
        let mut connection = open.connection.clone();
        let request = command.query_async(&mut *connection);
        self.noted(&open, request).await
    }

    pub(super) async fn subscribe(&self, open: &Arc<Open>, to: &str) -> Result<(), LockProblem> {
        let mut connection = open.connection.clone();
        self.noted(open, connection.subscribe(to)).await
    }

    pub(super) async fn unsubscribe(&self, open: &Arc<Open>, to: &str) -> Result<(), LockProblem> {
        let mut connection = open.connection.clone();
        self.noted(open, connection.unsubscribe(to)).await
    }

    /// The connection that is open, or a new one.
    pub(super) async fn open(&self) -> Result<Arc<Open>, LockProblem> {
        if let Some(open) = self.usable() {
            return Ok(open);
        }
        // In a box: what connecting needs would otherwise be part of every
        // request, and be allocated with each.
        let connecting = Box::pin(self.connect());
        // The time limit includes the wait for somebody else who is connecting.
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
        // With a name of this length, Redis looks waiters up in a table; with
        // a short one, it would pack small lines and search them.
        let hand_offs = format!("fencepost:hand-offs:{}", Uuid::new_v4());
        // A connection has its own patience.
        let mut config = AsyncConnectionConfig::new().set_response_timeout(None);
        if self.settings.wait != WaitPolicy::Spin {
            config = config.set_push_sender(Ears {
                wakes: wakes.clone(),
                hand_offs: hand_offs.clone(),
            });
        }
        let within = self.settings.connect_timeout;
        let connecting = bounded::connect(&self.client, config, within);
        let mut connection = connecting.await.map_err(connect_problem_of)?;
        if self.settings.wait == WaitPolicy::Queue {
            // Before anybody can stand in a line on this connection: so no
            // hand-off to it is ever missed.
            let subscribed = connection.subscribe(&hand_offs).await;
            subscribed.map_err(connect_problem_of)?;
        }
        let open = Arc::new(Open {
            connection,
            patience: Patience::new(self.settings.response_timeout),
            unanswered_in_a_row: AtomicU32::new(0),
            wakes,
            hand_offs,
        });
        *self.current() = Some(open.clone());
        Ok(open)
    }

    fn usable(&self) -> Option<Arc<Open>> {
        let current = self.current().clone();
        current.filter(|open| !open.wakes.are_over())
    }

    fn current(&self) -> MutexGuard<'_, Option<Arc<Open>>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Awaits an answer, and learns from it whether the connection is worth keeping.
    async fn noted<T>(
        &self,
        open: &Arc<Open>,
        request: impl Future<Output = Result<T, RedisError>>,
    ) -> Result<T, LockProblem> {
        self.requests.inc();
        let unanswered = &open.unanswered_in_a_row;
        let Some(answer) = open.patience.bound(request).await else {
            if unanswered.fetch_add(1, Ordering::Relaxed) + 1 >= UNANSWERED_IN_A_ROW_MAX {
                self.give_up(open);
            }
            let limit_ms = open.patience.limit().as_millis();
            return Err(LockProblem::NoAnswer(format!("not within {limit_ms} ms")));
        };
        match &answer {
            Ok(_) => unanswered.store(0, Ordering::Relaxed),
            Err(error) if answered(error) => {}
            Err(_) => self.give_up(open),
        }
        answer.map_err(problem_of)
    }

    /// This connection is of no use any more; the next request opens another.
    fn give_up(&self, open: &Arc<Open>) {
        // Those who wait on it would wait in vain.
        open.wakes.end();
        let mut current = self.current();
        if current.as_ref().is_some_and(|now| Arc::ptr_eq(now, open)) {
            *current = None;
        }
    }
}

/// The third version of the protocol, in which a connection that sends
/// requests also hears what was published.
fn hearing(client: &Client) -> Result<Client, RedisError> {
    let info = client
        .get_connection_info()
        .clone()
        .into_connection_info()?;
    let settings = info.redis_settings().clone();
    Client::open(info.set_redis_settings(settings.set_protocol(ProtocolVersion::RESP3)))
}

/// `host:port`, or a URL as Redis clients know it.
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

/// The server itself said so, and the connection goes on.
fn answered(error: &RedisError) -> bool {
    matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension)
}

pub(in crate::dlock) fn problem_of(error: RedisError) -> LockProblem {
    match error.kind() {
        ErrorKind::Parse | ErrorKind::UnexpectedReturnType => bad_answer(&error),
        _ if answered(&error) => LockProblem::Refused(error.to_string()),
        _ => LockProblem::NoAnswer(error.to_string()),
    }
}

/// A parser's complaint has a line for each way in which it has tried.
fn bad_answer(error: &RedisError) -> LockProblem {
    let words = error.to_string();
    let words: Vec<&str> = words.split_whitespace().collect();
    LockProblem::BadAnswer(words.join(" "))
}

pub fn connect_problem_of(error: RedisError) -> LockProblem {
    match error.kind() {
        ErrorKind::Parse | ErrorKind::UnexpectedReturnType => bad_answer(&error),
        ErrorKind::AuthenticationFailed | ErrorKind::Server(ServerErrorKind::NoPerm) => {
            LockProblem::Refused(error.to_string())
        }
        _ => LockProblem::Unreachable(error.to_string()),
    }
}
