use super::{Lua, RedisSettings};
use crate::dlock::LockProblem;
use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, ErrorKind, FromRedisValue, RedisError, ServerErrorKind,
};
use tokio::sync::Mutex;
use tokio::time::timeout;

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
    current: Mutex<Current>,
}

#[derive(Default)]
struct Current {
    open: Option<Open>,
    /// How many were opened so far.
    opened: u64,
}

struct Open {
    connection: MultiplexedConnection,
    /// Tells a connection from the one that replaced it meanwhile.
    number: u64,
    unanswered_in_a_row: u32,
}

const UNANSWERED_IN_A_ROW_MAX: u32 = 2;

impl RedisLink {
    pub(in crate::dlock) fn new(
        address: &str,
        settings: RedisSettings,
    ) -> Result<RedisLink, LockProblem> {
        let client = client(address)?;
        // Not the address as it was given: that may hold a password.
        let node = client.get_connection_info().addr().to_string();
        Ok(RedisLink {
            client,
            settings,
            node,
            current: Mutex::default(),
        })
    }

    pub(in crate::dlock) fn node(&self) -> &str {
        &self.node
    }

    /// Runs a script on the connection that is open, or on a new one.
    pub(in crate::dlock) async fn run<T: FromRedisValue>(
        &self,
        script: &Lua,
        keys: &[String],
        arguments: &[&str],
    ) -> Result<T, LockProblem> {
        // The time limit includes the wait for somebody else who is connecting.
        let (mut connection, number) = timeout(self.settings.connect_timeout, self.connection())
            .await
            .map_err(|_| LockProblem::Unreachable("connecting took too long".to_owned()))??;
        let answer = script.run(&mut connection, keys, arguments).await;
        self.note(number, answer.as_ref().err()).await;
        answer.map_err(problem_of)
    }

    async fn connection(&self) -> Result<(MultiplexedConnection, u64), LockProblem> {
        let mut current = self.current.lock().await;
        if let Some(open) = &current.open {
            return Ok((open.connection.clone(), open.number));
        }
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.settings.connect_timeout))
            .set_response_timeout(Some(self.settings.response_timeout));
        let connection = self
            .client
            .get_multiplexed_async_connection_with_config(&config)
            .await
            .map_err(connect_problem_of)?;
        current.opened += 1;
        let number = current.opened;
        current.open = Some(Open {
            connection: connection.clone(),
            number,
            unanswered_in_a_row: 0,
        });
        Ok((connection, number))
    }

    /// Learns from an answer whether the connection is worth keeping.
    async fn note(&self, number: u64, error: Option<&RedisError>) {
        let mut current = self.current.lock().await;
        let Some(open) = current.open.as_mut().filter(|open| open.number == number) else {
            return;
        };
        let broken = match error {
            Some(error) if error.is_timeout() => {
                open.unanswered_in_a_row += 1;
                open.unanswered_in_a_row >= UNANSWERED_IN_A_ROW_MAX
            }
            Some(error) => !answered(error),
            None => {
                open.unanswered_in_a_row = 0;
                false
            }
        };
        if broken {
            current.open = None;
        }
    }
}

/// `host:port`, or a URL as Redis clients know it.
pub(in crate::dlock) fn client(address: &str) -> Result<Client, LockProblem> {
    let url = if address.contains("://") {
        address.to_owned()
    } else {
        format!("redis://{address}")
    };
    Client::open(url).map_err(|error| LockProblem::BadAddress {
        address: address.to_owned(),
        reason: error.to_string(),
    })
}

/// The server itself said so, and the connection goes on.
fn answered(error: &RedisError) -> bool {
    matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension)
}

pub(in crate::dlock) fn problem_of(error: RedisError) -> LockProblem {
    match error.kind() {
        ErrorKind::Parse | ErrorKind::UnexpectedReturnType => {
            LockProblem::BadAnswer(error.to_string())
        }
        _ if answered(&error) => LockProblem::Refused(error.to_string()),
        _ => LockProblem::NoAnswer(error.to_string()),
    }
}

pub(in crate::dlock) fn connect_problem_of(error: RedisError) -> LockProblem {
    match error.kind() {
        ErrorKind::Parse | ErrorKind::UnexpectedReturnType => {
            LockProblem::BadAnswer(error.to_string())
        }
        ErrorKind::AuthenticationFailed | ErrorKind::Server(ServerErrorKind::NoPerm) => {
            LockProblem::Refused(error.to_string())
        }
        _ => LockProblem::Unreachable(error.to_string()),
    }
}
