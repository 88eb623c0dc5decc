use crate::clock::wall_clock_ns;
use crate::services::questions::*;
use fencing_lock::servers::{MariadbConnection, connect_mariadb};

pub struct MariadbServer;

#[async_trait]
impl Questions for MariadbServer {
    async fn time(&self, server: &Reached) -> Proof<Option<TimeBetween>> {
        let connection = connect(server.address).await?;
        let before = wall_clock_ns();
        let time = "SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS INT)";
        let micros = number(&connection, server.address, time).await?;
        Ok(Some((before, micros * 1_000, wall_clock_ns())))
    }

    /// Gives it a table to remember, which no lock uses.
    async fn remember(&self, server: &Reached) -> Proof<bool> {
        let address = server.address;
        let create = "CREATE TABLE IF NOT EXISTS fencepost_memory (nothing INT)";
        let connection = connect(address).await?;
        let created = timeout(ANSWER_DEADLINE, connection.ask(create)).await;
        let created = created.map_err(|_| failed(address, "no answer"))?;
        let created = created.map_err(|error| failed(address, error));
        created.map(|_| true)
    }

    async fn remembers(&self, server: &Reached) -> Proof<Option<bool>> {
        let is_there = "SELECT COUNT(*) FROM information_schema.TABLES
                        WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'fencepost_memory'";
        let connection = connect(server.address).await?;
        let found = number(&connection, server.address, is_there).await?;
        Ok(Some(found == 1))
    }
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
