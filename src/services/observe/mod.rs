//! Observers at the lock servers, which report what each server held, for `locks.jsonl`.

mod layout;
pub mod lines;
pub mod session_rows;

pub use layout::Layout;

// Every observer uses these.
pub use super::KeyTemplate;
pub use crate::clock::raw_monotonic_ns;
pub use crate::model::{FencingToken, LockEvent, LockEventKind};
pub use fencing_lock::LockProblem;
pub use std::collections::{BTreeMap, HashMap};
pub use std::ops::ControlFlow;
pub use std::time::Duration;
pub use tokio::sync::{mpsc, oneshot};
pub use tokio::time::{Instant, timeout};
pub use tokio_util::sync::CancellationToken;

/// The limit for each step that waits for the server, not for an event.
pub const STEP_TIMEOUT: Duration = Duration::from_secs(5);

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
pub async fn send(events: &mpsc::Sender<LockEvent>, rows: Vec<LockEvent>) -> ControlFlow<()> {
    for row in rows {
        if events.send(row).await.is_err() {
            return ControlFlow::Break(());
        }
    }
    ControlFlow::Continue(())
}

/// Returns the name of an owner: as it is if it is text, else its bytes in hex.
pub fn readable(owner: &[u8]) -> String {
    match std::str::from_utf8(owner) {
        Ok(text) => text.to_owned(),
        Err(_) => owner.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}
