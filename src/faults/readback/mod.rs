//! Questions to the servers about themselves, over ports that are published to this machine and
//! to nobody else, so no network fault affects them.

pub mod clock;
mod consul;
mod dynamodb;
mod etcd;
mod etcd_played;
mod http_date;
mod mariadb;
mod memory;
pub mod postgres;
pub mod redis;
mod zookeeper;

use super::Proof;
use super::field::Reached;
use crate::model::UnprovenReason;
use crate::services::Readback;
use std::net::SocketAddr;
use std::time::Duration;

const ANSWER_DEADLINE: Duration = Duration::from_secs(5);

/// The limit of an answer. A list of many leases is much shorter.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// Gives a server something that it remembers unless it loses its data. Returns whether it did:
/// replicas, and servers of some kinds, are not asked to remember anything.
pub async fn remember(server: &Reached) -> Proof<bool> {
    let address = server.address;
    match server.answers {
        Readback::Redis if !redis::is_primary(server).await? => return Ok(false),
        Readback::Redis => redis::remember(server).await?,
        Readback::Postgres if !postgres::is_primary(address).await? => return Ok(false),
        Readback::Postgres => postgres::remember(address).await?,
        Readback::Mariadb => mariadb::remember(address).await?,
        Readback::Consul => consul::remember(address).await?,
        Readback::DynamoDb => dynamodb::remember(address).await?,
        Readback::Memory => memory::remember(server).await?,
        Readback::Etcd | Readback::Zookeeper | Readback::Http => return Ok(false),
    }
    Ok(true)
}

/// Returns whether a server still has what it was given; None if its kind is given nothing.
pub async fn remembers(server: &Reached) -> Proof<Option<bool>> {
    let address = server.address;
    let remembers = match server.answers {
        Readback::Redis => redis::remembers(server).await,
        Readback::Postgres => postgres::remembers(address).await,
        Readback::Mariadb => mariadb::remembers(address).await,
        Readback::Consul => consul::remembers(address).await,
        Readback::DynamoDb => dynamodb::remembers(address).await,
        Readback::Memory => memory::remembers(server).await,
        Readback::Etcd | Readback::Zookeeper | Readback::Http => return Ok(None),
    };
    remembers.map(Some)
}

/// Returns whether a member leads its cluster; None if it is not a member of one.
pub async fn leads(server: &Reached) -> Proof<Option<bool>> {
    match server.answers {
        Readback::Etcd => etcd::leads(server).await.map(Some),
        Readback::Zookeeper => zookeeper::leads(server.address).await.map(Some),
        Readback::Redis | Readback::Postgres | Readback::Mariadb => Ok(None),
        Readback::Consul | Readback::DynamoDb | Readback::Memory | Readback::Http => Ok(None),
    }
}

/// Returns the realtime clock of a server, in nanoseconds, between two readings of ours; None if
/// only the date of an answer tells it.
async fn time(server: &Reached, ours: impl Fn() -> i64) -> Proof<Option<(i64, i64, i64)>> {
    let address = server.address;
    let read = match server.answers {
        Readback::Redis => redis::time(server, ours).await,
        Readback::Postgres => postgres::time(address, ours).await,
        Readback::Mariadb => mariadb::time(address, ours).await,
        Readback::Memory => memory::time(server, ours).await,
        // Only a leader dates transactions.
        Readback::Zookeeper if !zookeeper::leads(address).await? => {
            return Err(UnprovenReason::ClockOfNoLeader);
        }
        Readback::Zookeeper => zookeeper::time(address, ours).await,
        Readback::Consul | Readback::DynamoDb | Readback::Etcd | Readback::Http => {
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
