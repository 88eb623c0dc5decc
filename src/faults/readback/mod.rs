//! Questions to the servers about themselves, over ports that are published to this machine and
//! to nobody else, so no network fault affects them.

pub mod clock;
mod consul;
mod dynamodb;
mod etcd;
mod http_date;
mod mariadb;
mod postgres;
pub mod redis;
mod zookeeper;

use super::Proof;
use crate::model::UnprovenReason;
use crate::services::Readback;
use std::net::SocketAddr;
use std::time::Duration;

const ANSWER_DEADLINE: Duration = Duration::from_secs(5);

/// The limit of an answer. A list of many leases is much shorter.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// Gives a server something that it remembers unless it loses its data. Returns whether it did:
/// replicas, and servers of some kinds, are not asked to remember anything.
pub async fn remember(server: (Readback, SocketAddr)) -> Proof<bool> {
    match server {
        (Readback::Redis, address) if !redis::is_primary(address).await? => return Ok(false),
        (Readback::Redis, address) => redis::remember(address).await?,
        (Readback::Postgres, address) => postgres::remember(address).await?,
        (Readback::Mariadb, address) => mariadb::remember(address).await?,
        (Readback::Consul, address) => consul::remember(address).await?,
        (Readback::DynamoDb, address) => dynamodb::remember(address).await?,
        (Readback::Etcd | Readback::Zookeeper | Readback::Http, _) => return Ok(false),
    }
    Ok(true)
}

/// Returns whether a server still has what it was given; None if its kind is given nothing.
pub async fn remembers(server: (Readback, SocketAddr)) -> Proof<Option<bool>> {
    let remembers = match server {
        (Readback::Redis, address) => redis::remembers(address).await,
        (Readback::Postgres, address) => postgres::remembers(address).await,
        (Readback::Mariadb, address) => mariadb::remembers(address).await,
        (Readback::Consul, address) => consul::remembers(address).await,
        (Readback::DynamoDb, address) => dynamodb::remembers(address).await,
        (Readback::Etcd | Readback::Zookeeper | Readback::Http, _) => return Ok(None),
    };
    remembers.map(Some)
}

/// Returns whether a member leads its cluster; None if it is not a member of one.
pub async fn leads(server: (Readback, SocketAddr)) -> Proof<Option<bool>> {
    match server {
        (Readback::Etcd, address) => etcd::leads(address).await.map(Some),
        (Readback::Zookeeper, address) => zookeeper::leads(address).await.map(Some),
        (Readback::Redis | Readback::Postgres | Readback::Mariadb, _) => Ok(None),
        (Readback::Consul | Readback::DynamoDb | Readback::Http, _) => Ok(None),
    }
}

/// Returns the realtime clock of a server, in nanoseconds, between two readings of ours; None if
/// only the date of an answer tells it.
async fn time(
    server: (Readback, SocketAddr),
    ours: impl Fn() -> i64,
) -> Proof<Option<(i64, i64, i64)>> {
    let read = match server {
        (Readback::Redis, address) => redis::time(address, ours).await,
        (Readback::Postgres, address) => postgres::time(address, ours).await,
        (Readback::Mariadb, address) => mariadb::time(address, ours).await,
        // Only a leader dates transactions.
        (Readback::Zookeeper, address) if !zookeeper::leads(address).await? => {
            return Err(UnprovenReason::ClockOfNoLeader);
        }
        (Readback::Zookeeper, address) => zookeeper::time(address, ours).await,
        (Readback::Consul | Readback::DynamoDb | Readback::Etcd | Readback::Http, _) => {
            return Ok(None);
        }
    };
    read.map(Some)
}

/// Makes the reason for a server that does not answer as it should.
fn failed(address: SocketAddr, error: impl ToString) -> UnprovenReason {
    UnprovenReason::Server {
        server: address.to_string(),
        error: error.to_string(),
    }
}

/// Makes a client for servers on this machine, which are not behind a proxy.
fn http() -> reqwest::Result<reqwest::Client> {
    let client = reqwest::Client::builder();
    client.no_proxy().timeout(ANSWER_DEADLINE).build()
}
