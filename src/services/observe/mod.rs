//! Observers at the lock servers, which report what each server held, for `locks.jsonl`.

mod bystander;
mod consul;
mod consul_rows;
mod dynamodb;
mod dynamodb_rows;
mod etcd;
mod etcd_rows;
mod layout;
mod lines;
mod mariadb;
mod postgres;
mod postgres_rows;
mod redis;
mod redis_rows;
mod session_rows;
mod zookeeper;

pub use bystander::{EtcdBystander, RedisBystander};
pub use consul::observe_consul;
pub use dynamodb::observe_dynamodb;
pub use etcd::observe_etcd;
pub use layout::Layout;
pub use mariadb::observe_mariadb;
pub use postgres::observe_postgres;
pub use redis::observe_redis;
pub use zookeeper::observe_zookeeper;

use super::KeyTemplate;
use crate::clock::raw_monotonic_ns;
use crate::model::{FencingToken, LockEvent, LockEventKind};
use fencing_lock::LockProblem;
use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

/// The limit for each step that waits for the server, not for an event.
const STEP_TIMEOUT: Duration = Duration::from_secs(5);

/// The watch of one lock server. The locks are this project's own, or have the keys that `keys`
/// says.
///
/// After `stop`, everything that the server had done until then is still delivered, so the receiver
/// has to be read to its end: a full one blocks the observer. An error means that the rows are
/// incomplete from there on: the caller has to say so in its record.
pub struct Watch<'a> {
    pub address: &'a str,
    /// The name of the server in the rows.
    pub node: &'a str,
    pub keys: Option<&'a KeyTemplate>,
    pub events: mpsc::Sender<LockEvent>,
    /// Receives the exact version of the server, once no later grant can be missed.
    pub ready: oneshot::Sender<String>,
    pub stop: CancellationToken,
}

/// Sends rows; breaks if the caller dropped the receiver, and so wants no more.
async fn send(events: &mpsc::Sender<LockEvent>, rows: Vec<LockEvent>) -> ControlFlow<()> {
    for row in rows {
        if events.send(row).await.is_err() {
            return ControlFlow::Break(());
        }
    }
    ControlFlow::Continue(())
}

/// Returns the name of an owner: as it is if it is text, else its bytes in hex.
fn readable(owner: &[u8]) -> String {
    match std::str::from_utf8(owner) {
        Ok(text) => text.to_owned(),
        Err(_) => owner.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}
