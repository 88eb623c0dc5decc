use super::failure::connect_problem_of;
use super::frames::Frames;
use super::server::Server;
#[cfg(feature = "servers")]
use crate::Env;
use crate::LockProblem;
use crate::bounded::Bounded;
use crate::task::Task;
use std::future::poll_fn;
use std::ops::Deref;
use std::time::Duration;
use tokio::time::timeout;
use tokio_postgres::{AsyncMessage, Client, NoTls, Notification};

/// A connection that closes when it is dropped.
pub struct PostgresConnection {
    client: Client,
    _driver: Task,
}

impl Deref for PostgresConnection {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

/// Connects to the server at this address; `within` is the time limit.
#[cfg(feature = "servers")]
pub async fn connect(
    address: &str,
    within: Duration,
    hears: impl FnMut(Notification) + Send + 'static,
) -> Result<PostgresConnection, LockProblem> {
    open(&Server::at(address, Env::default())?, within, hears).await
}

/// Fails unless this is the schema in which a session makes what is named without one. A pooler of
/// connections may leave out the options of a session, and then that is a schema of somebody else's.
#[cfg(feature = "servers")]
pub async fn check_schema(connection: &PostgresConnection, name: &str) -> Result<(), LockProblem> {
    let asked = connection.query_typed_one("SELECT current_schema()::text", &[]);
    let current = asked
        .await
        .and_then(|row| row.try_get::<_, Option<String>>(0));
    match current.map_err(super::failure::problem_of)? {
        Some(current) if current == name => Ok(()),
        current => Err(LockProblem::Refused(format!(
            "its sessions are in the schema {} instead of {name}, because something on the way ignores \
             their options; name the Postgres itself in the place of a pooler",
            current.unwrap_or_default()
        ))),
    }
}

/// Connects and authenticates. Everything that the server announces on the connection goes
/// to `hears`, which is dropped when the connection ends, in any way.
pub(super) async fn open(
    server: &Server,
    within: Duration,
    mut hears: impl FnMut(Notification) + Send + 'static,
) -> Result<PostgresConnection, LockProblem> {
    let connecting = async {
        let unreachable = |error: std::io::Error| LockProblem::Unreachable(error.to_string());
        let stream = server.env.dial(&server.host, server.port).await;
        let stream = stream.map_err(unreachable)?;
        let stream = Bounded::<Frames>::new(stream);
        let connected = server.config.connect_raw(stream, NoTls).await;
        let (client, mut connection) = connected.map_err(connect_problem_of)?;
        let driver = async move {
            // An error ends the connection, and everybody who waits for an answer learns
            // of that.
            while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
                if let AsyncMessage::Notification(word) = message {
                    hears(word);
                }
            }
        };
        Ok(PostgresConnection {
            client,
            _driver: server.env.spawn(driver),
        })
    };
    let too_late = |_| {
        Err(LockProblem::Unreachable(
            "connecting took too long".to_owned(),
        ))
    };
    timeout(within, connecting).await.unwrap_or_else(too_late)
}
