//! The questions that servers answer about themselves, over ports that are published to this machine
//! and to nobody else, so no network fault affects them.

mod http_date;

pub use crate::model::{Proof, UnprovenReason};
pub use async_trait::async_trait;
pub use http_date::unix_s;
pub use std::net::SocketAddr;
pub use tokio::time::timeout;

use fencing_lock::Env;
use std::time::Duration;

pub const ANSWER_DEADLINE: Duration = Duration::from_secs(5);

/// The limit of an answer. A list of many leases is much shorter.
pub const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// A server as this process reaches it.
#[derive(Clone)]
pub struct Reached {
    pub answers: &'static dyn Questions,
    pub address: SocketAddr,
    pub env: Env,
}

/// The questions that one kind of server answers. What it does not say is not known.
#[async_trait]
pub trait Questions: Sync {
    /// Returns the first bytes for a server that closes the connection of whoever asks it for a
    /// page.
    fn greeting(&self) -> Option<&'static str> {
        None
    }

    /// Returns whether a member leads its cluster; None if it is not a member of one.
    async fn leads(&self, _: &Reached) -> Proof<Option<bool>> {
        Ok(None)
    }

    /// Returns its realtime clock; None if only the date of an answer tells it. Connecting takes
    /// longer than asking, so it is done before the first reading of ours.
    async fn time(&self, _: &Reached) -> Proof<Option<TimeBetween>> {
        Ok(None)
    }

    /// Gives it something that it remembers unless it loses its data. Returns whether it did:
    /// replicas, and servers of some kinds, are not asked to remember anything.
    async fn remember(&self, _: &Reached) -> Proof<bool> {
        Ok(false)
    }

    /// Returns whether it still has what it was given; None if its kind is given nothing.
    async fn remembers(&self, _: &Reached) -> Proof<Option<bool>> {
        Ok(None)
    }

    /// Returns whether its leases show the monotonic clock of its leader.
    fn has_lease_clock(&self) -> bool {
        false
    }

    /// Grants a lease by which the monotonic clock is read.
    async fn grant_lease(&self, _: &Reached) -> Proof<i64> {
        Err(UnprovenReason::ClockHidden)
    }

    /// Returns the seconds until the lease expires, by the leader's clock.
    async fn lease_left_s(&self, _: &Reached, _lease: i64) -> Proof<i64> {
        Err(UnprovenReason::ClockHidden)
    }

    async fn revoke_lease(&self, _: &Reached, _lease: i64) -> Proof {
        Ok(())
    }

    /// Returns whether it survives that its monotonic clock is set back.
    fn survives_setting_back(&self) -> bool {
        true
    }

    /// Returns whether it is a primary, if its kind has replicas that can become one.
    async fn is_primary(&self, _: &Reached) -> Proof<bool> {
        Err(UnprovenReason::NotPromotable)
    }

    /// Makes a replica the primary.
    async fn promote(&self, _: &Reached) -> Proof {
        Err(UnprovenReason::NotPromotable)
    }

    /// Returns what no other server answers.
    async fn sign(&self, _: &Reached) -> Proof<Sign> {
        Err(UnprovenReason::NotPromotable)
    }

    /// Removes what a sign left at the server.
    async fn remove(&self, _: &Reached, _: &Sign) -> Proof {
        Ok(())
    }
}

/// A time of a server, in nanoseconds, between two readings of ours.
pub type TimeBetween = (i64, i64, i64);

/// An answer that only one server gives to a question.
pub struct Sign {
    pub question: String,
    pub answer: String,
    /// The words of every other server, which may repeat the question.
    pub refusal: Option<&'static str>,
}

impl Sign {
    pub fn is_in(&self, text: &str) -> bool {
        let is_refused = self.refusal.is_some_and(|words| text.contains(words));
        text.contains(&self.answer) && !is_refused
    }
}

/// A server of which only the date of its answers is known.
pub struct HttpServer;

impl Questions for HttpServer {}

/// Makes the reason for a server that does not answer as it should.
pub fn failed(address: SocketAddr, error: impl ToString) -> UnprovenReason {
    UnprovenReason::Server {
        server: address.to_string(),
        error: error.to_string(),
    }
}

/// Makes a client for servers on this machine, which are not behind a proxy.
pub fn http() -> reqwest::Result<reqwest::Client> {
    let client = reqwest::Client::builder();
    client.no_proxy().timeout(ANSWER_DEADLINE).build()
}
