use crate::clock::wall_clock_ns;
use crate::services::questions::*;
use fencing_lock::servers::{PostgresConnection, connect_postgres};
use tokio_postgres::types::FromSqlOwned;
use uuid::Uuid;

pub struct PostgresServer;

#[async_trait]
impl Questions for PostgresServer {
    /// The start of a session: the server asks for a password, or accepts or refuses it.
    fn greeting(&self) -> Option<&'static str> {
        Some("\0\0\0\x17\0\x03\0\0user\0postgres\0\0")
    }

    async fn time(&self, server: &Reached) -> Proof<Option<TimeBetween>> {
        let connection = connect(server.address).await?;
        let before = wall_clock_ns();
        let time = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
        let micros: i64 = ask(&connection, server.address, time).await?;
        Ok(Some((before, micros * 1_000, wall_clock_ns())))
    }

    /// Gives it a table to remember, which no lock uses.
    async fn remember(&self, server: &Reached) -> Proof<bool> {
        if !self.is_primary(server).await? {
            return Ok(false);
        }
        let create = "CREATE TABLE IF NOT EXISTS fencepost_memory ()";
        run(server.address, create).await.map(|()| true)
    }

    async fn remembers(&self, server: &Reached) -> Proof<Option<bool>> {
        let is_there = "SELECT to_regclass('fencepost_memory') IS NOT NULL";
        answer(server.address, is_there).await.map(Some)
    }

    async fn is_primary(&self, server: &Reached) -> Proof<bool> {
        answer(server.address, "SELECT NOT pg_is_in_recovery()").await
    }

    /// Returns once it accepts writes, or when it has not for a while.
    async fn promote(&self, server: &Reached) -> Proof {
        let promote = format!("SELECT pg_promote(true, {})", ANSWER_DEADLINE.as_secs() - 1);
        match answer(server.address, &promote).await? {
            true => Ok(()),
            false => Err(failed(server.address, "pg_promote was not done in time")),
        }
    }

    /// Makes a user that no other server has, and asks with the start of its session.
    async fn sign(&self, server: &Reached) -> Proof<Sign> {
        let user = format!("fencepost_{}", &Uuid::new_v4().simple().to_string()[..8]);
        run(server.address, &format!("CREATE ROLE {user} LOGIN")).await?;
        let text = format!("\0\x03\0\0user\0{user}\0database\0postgres\0\0");
        // The name is so short that the length is one character.
        let length = char::from(4 + text.len() as u8);
        Ok(Sign {
            question: format!("\0\0\0{length}{text}"),
            answer: user,
            refusal: Some("does not exist"),
        })
    }

    async fn remove(&self, server: &Reached, sign: &Sign) -> Proof {
        run(server.address, &format!("DROP ROLE {}", sign.answer)).await
    }
}

async fn run(address: SocketAddr, statement: &str) -> Proof {
    let connection = connect(address).await?;
    let done = timeout(ANSWER_DEADLINE, connection.batch_execute(statement)).await;
    let done = done.map_err(|_| failed(address, "no answer"))?;
    done.map_err(|error| failed(address, error))
}

async fn connect(address: SocketAddr) -> Proof<PostgresConnection> {
    let connected = connect_postgres(&address.to_string(), ANSWER_DEADLINE, |_| {}).await;
    connected.map_err(|error| failed(address, error))
}

/// Asks in a new session.
async fn answer(address: SocketAddr, question: &str) -> Proof<bool> {
    ask(&connect(address).await?, address, question).await
}

async fn ask<T: FromSqlOwned>(
    connection: &PostgresConnection,
    address: SocketAddr,
    question: &str,
) -> Proof<T> {
    let answer = timeout(ANSWER_DEADLINE, connection.query_typed_one(question, &[])).await;
    let answer = answer.map_err(|_| failed(address, "no answer"))?;
    let answer = answer.and_then(|row| row.try_get(0));
    answer.map_err(|error| failed(address, error))
}
