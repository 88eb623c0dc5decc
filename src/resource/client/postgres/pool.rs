//! The connections of one client: each statement has one for itself.

use super::{ClientError, LONGEST_CONNECT, PostgresClient, WRITE, no_answer};
use fencing_lock::servers::PostgresConnection;
use parking_lot::Mutex;
use std::ops::Deref;
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error, Row, Statement};

/// A server allows some hundred of them.
const MOST_CONNECTIONS: usize = 64;
/// A connection that was used within this time is not asked whether it still works.
const TRUSTED: Duration = Duration::from_millis(500);

pub struct Pool {
    /// Each with the moment since when nobody has used it.
    idle: Mutex<Vec<(Instant, Session)>>,
    places: Semaphore,
}

impl Default for Pool {
    fn default() -> Pool {
        Pool {
            idle: Mutex::default(),
            places: Semaphore::new(MOST_CONNECTIONS),
        }
    }
}

/// A connection, and what its server knows already.
pub struct Session {
    connection: PostgresConnection,
    has_written: bool,
    /// The statement that writes, parsed and planned.
    write: Option<Statement>,
}

/// A session with its place among all of a client.
pub struct Borrowed<'a> {
    pub session: Session,
    _place: Option<SemaphorePermit<'a>>,
}

impl Session {
    pub fn new(connection: PostgresConnection) -> Session {
        Session {
            connection,
            has_written: false,
            write: None,
        }
    }

    /// Sends the statement that writes. One who writes again and again has the server parse it once;
    /// that is asked for behind the second write, so that no write waits for it.
    pub async fn write(
        &mut self,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Row, Error> {
        if let Some(statement) = &self.write {
            let values: Vec<_> = parameters.iter().map(|(value, _)| *value).collect();
            return self.connection.query_one(statement, &values).await;
        }
        let write = self.connection.query_typed_one(WRITE, parameters);
        if !std::mem::replace(&mut self.has_written, true) {
            return write.await;
        }
        let types: Vec<Type> = parameters.iter().map(|(_, kind)| kind.clone()).collect();
        let (row, statement) = tokio::join!(write, self.connection.prepare_typed(WRITE, &types));
        self.write = statement.ok();
        row
    }
}

impl Deref for Session {
    type Target = PostgresConnection;

    fn deref(&self) -> &PostgresConnection {
        &self.connection
    }
}

impl PostgresClient {
    pub(super) async fn borrow(&self, name: &str) -> Result<Borrowed<'_>, ClientError> {
        let place = timeout(self.timeout, self.pool.places.acquire()).await;
        let place = place.map_err(|_| no_answer(name, "no connection was free in time"))?;
        let session = match self.idle_session().await {
            Some(idle) => idle,
            None => Session::new(self.connect(name, |_| {}).await?),
        };
        Ok(Borrowed {
            session,
            _place: place.ok(),
        })
    }

    /// The session is used again only if it was answered: a statement that was given up may still
    /// be under way on it.
    pub(super) fn give_back<T>(&self, borrowed: Borrowed<'_>, answer: &Result<T, ClientError>) {
        let error = answer.as_ref().err();
        if error.is_none_or(|error| !error.outcome_unknown()) {
            let mut idle = self.pool.idle.lock();
            idle.push((Instant::now(), borrowed.session));
        }
    }

    /// Returns a session that is there already. The end of one that nobody has used for a while may
    /// not have been noticed yet, above all by a process that was stopped.
    async fn idle_session(&self) -> Option<Session> {
        let (since, session) = self.pool.idle.lock().pop()?;
        // Somebody who sends again asks nobody beforehand.
        let is_young = since.elapsed() < TRUSTED || self.style.sends_again();
        let is_trusted = is_young && !session.is_closed();
        let works = is_trusted || {
            let checked = timeout(LONGEST_CONNECT, session.check_connection()).await;
            matches!(checked, Ok(Ok(())))
        };
        if works {
            return Some(session);
        }
        // The others are at least as old.
        self.pool.idle.lock().clear();
        None
    }
}
