use super::super::Proof;
use super::{ANSWER_DEADLINE, failed};
use fencing_lock::servers::{PostgresConnection, connect_postgres};
use std::net::SocketAddr;
use tokio::time::timeout;
use tokio_postgres::types::FromSqlOwned;
use uuid::Uuid;

/// Returns its realtime clock, in nanoseconds, between two readings of ours. The session is a new
/// one, and is there before the first reading.
pub async fn time(address: SocketAddr, ours: impl Fn() -> i64) -> Proof<(i64, i64, i64)> {
    let connection = connect(address).await?;
    let before = ours();
    let time = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
    let micros: i64 = ask(&connection, address, time).await?;
    Ok((before, micros * 1_000, ours()))
}

/// Gives it a table to remember, which no lock uses.
pub async fn remember(address: SocketAddr) -> Proof {
    run(address, "CREATE TABLE IF NOT EXISTS fencepost_memory ()").await
}

pub async fn remembers(address: SocketAddr) -> Proof<bool> {
    let is_there = "SELECT to_regclass('fencepost_memory') IS NOT NULL";
    ask(&connect(address).await?, address, is_there).await
}

pub async fn is_primary(address: SocketAddr) -> Proof<bool> {
    let is_primary = "SELECT NOT pg_is_in_recovery()";
    ask(&connect(address).await?, address, is_primary).await
}

/// Returns once it accepts writes, or when it has not for a while.
pub async fn promote(address: SocketAddr) -> Proof {
    let promote = format!("SELECT pg_promote(true, {})", ANSWER_DEADLINE.as_secs() - 1);
    let done: bool = ask(&connect(address).await?, address, &promote).await?;
    match done {
        true => Ok(()),
        false => Err(failed(address, "pg_promote was not done in time")),
    }
}

/// Makes a user that no other server has, and returns its name.
pub async fn make_user(address: SocketAddr) -> Proof<String> {
    let name = format!("fencepost_{}", &Uuid::new_v4().simple().to_string()[..8]);
    run(address, &format!("CREATE ROLE {name} LOGIN")).await?;
    Ok(name)
}

pub async fn remove_user(address: SocketAddr, name: &str) -> Proof {
    run(address, &format!("DROP ROLE {name}")).await
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
