//! Questions to the servers about themselves, over ports that are published to this machine and
//! to nobody else, so no network fault affects them.

pub mod clock;
pub mod etcd;
mod http_date;
pub mod mariadb;
pub mod postgres;
pub mod redis;

use crate::model::UnprovenReason;
use std::net::SocketAddr;
use std::time::Duration;

const ANSWER_DEADLINE: Duration = Duration::from_secs(5);

/// The limit of an answer. A list of many leases is much shorter.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;

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
