use super::super::Proof;
use super::{ANSWER_DEADLINE, failed};
use fencing_lock::servers::{PostgresConnection, connect_postgres};
use std::net::SocketAddr;
use tokio::time::timeout;
use tokio_postgres::types::FromSqlOwned;

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
    let create = "CREATE TABLE IF NOT EXISTS fencepost_memory ()";
    let connection = connect(address).await?;
    let created = timeout(ANSWER_DEADLINE, connection.batch_execute(create)).await;
    let created = created.map_err(|_| failed(address, "no answer"))?;
    created.map_err(|error| failed(address, error))
}

pub async fn remembers(address: SocketAddr) -> Proof<bool> {
    let is_there = "SELECT to_regclass('fencepost_memory') IS NOT NULL";
    ask(&connect(address).await?, address, is_there).await
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
