use super::super::Proof;
use super::{ANSWER_DEADLINE, failed};
use fencing_lock::servers::{MariadbConnection, connect_mariadb};
use std::net::SocketAddr;
use tokio::time::timeout;

/// Returns its realtime clock, in nanoseconds, between two readings of ours. The session is there
/// before the first reading.
pub async fn time(address: SocketAddr, ours: impl Fn() -> i64) -> Proof<(i64, i64, i64)> {
    let connection = connect(address).await?;
    let before = ours();
    let time = "SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS INT)";
    let micros = number(&connection, address, time).await?;
    Ok((before, micros * 1_000, ours()))
}

/// Gives it a table to remember, which no lock uses.
pub async fn remember(address: SocketAddr) -> Proof {
    let create = "CREATE TABLE IF NOT EXISTS fencepost_memory (nothing INT)";
    let connection = connect(address).await?;
    let created = timeout(ANSWER_DEADLINE, connection.ask(create)).await;
    let created = created.map_err(|_| failed(address, "no answer"))?;
    created.map(drop).map_err(|error| failed(address, error))
}

pub async fn remembers(address: SocketAddr) -> Proof<bool> {
    let is_there = "SELECT COUNT(*) FROM information_schema.TABLES
                    WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'fencepost_memory'";
    let found = number(&connect(address).await?, address, is_there).await?;
    Ok(found == 1)
}

async fn connect(address: SocketAddr) -> Proof<MariadbConnection> {
    let connected = connect_mariadb(&address.to_string(), ANSWER_DEADLINE).await;
    connected.map_err(|error| failed(address, error))
}

async fn number(connection: &MariadbConnection, address: SocketAddr, question: &str) -> Proof<i64> {
    let answer = timeout(ANSWER_DEADLINE, connection.number(question)).await;
    let answer = answer.map_err(|_| failed(address, "no answer"))?;
    let answer = answer.map_err(|error| failed(address, error))?;
    answer.ok_or_else(|| failed(address, "no number"))
}
