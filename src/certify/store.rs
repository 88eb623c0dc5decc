use super::{MOST_REQUESTS, Property};
use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;

/// The longest wait for an answer.
pub const ANSWER_DEADLINE: Duration = Duration::from_secs(10);

/// A write that is allowed only if the store is as `condition` says.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub key: String,
    pub condition: Condition,
    pub body: Bytes,
    /// Who writes.
    pub by: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    Absent,
    Is(Version),
}

/// An ETag, or a token with the position of its write.
pub type Version = String;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Accepted(Version),
    Refused,
}

/// The texts are the store's own words.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    #[error("no usable answer: {0}")]
    Unanswered(String),
    #[error("there is no such bucket ({0}); create it first")]
    NoSuchBucket(String),
    #[error(
        "the store does not accept the keys ({0}); check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    )]
    Denied(String),
    #[error("{0}")]
    Refused(String),
    #[error("interrupted")]
    Interrupted,
}

pub type StoreResult<T> = Result<T, StoreError>;

#[async_trait]
pub trait Store: Send + Sync {
    /// Looks whether the store lets us in, and makes what a certificate needs.
    async fn prepare(&self) -> StoreResult<()>;

    /// Returns why a property cannot be asked of this store.
    fn lacks(&self, property: Property) -> Option<&'static str>;

    async fn write(&self, attempt: &Attempt) -> StoreResult<Answer>;

    /// Begins a write, says so, and ends it when it is told to.
    async fn slow_write(
        &self,
        attempt: &Attempt,
        begun: oneshot::Sender<()>,
        go: oneshot::Receiver<()>,
    ) -> StoreResult<Answer>;

    /// Returns whether the same write again is answered as the first time. Otherwise it has to be
    /// refused.
    fn recognises_repetitions(&self) -> bool;

    async fn read(&self, key: &str) -> StoreResult<Option<(Version, Vec<u8>)>>;

    async fn delete(&self, key: &str) -> StoreResult<()>;

    /// Returns the keys of this certificate that the store lists.
    async fn list(&self) -> StoreResult<Vec<String>>;

    /// Returns a setting of the store that lets it forget what it acknowledged.
    async fn forgets(&self) -> StoreResult<Option<String>> {
        Ok(None)
    }

    /// Returns where everything is that a certificate makes.
    fn place(&self) -> String;

    /// Removes what was made. The error says what may be left.
    async fn remove(&self) -> Result<(), String>;

    /// Returns what stays because the store does not forget what is deleted.
    fn leaves(&self) -> Option<String> {
        None
    }

    fn book(&self) -> &Book;
}

/// The requests that were sent, and the keys that may have been made.
#[derive(Debug, Default)]
pub struct Book {
    requests: AtomicU32,
    is_interrupted: AtomicBool,
    keys: Mutex<BTreeSet<String>>,
}

impl Book {
    /// Counts a request, unless it must not be sent.
    pub fn count(&self) -> StoreResult<()> {
        if self.is_interrupted.load(Ordering::Relaxed) {
            return Err(StoreError::Interrupted);
        }
        let before = self.requests.fetch_add(1, Ordering::Relaxed);
        match before < MOST_REQUESTS {
            true => Ok(()),
            false => Err(StoreError::Refused(format!(
                "{MOST_REQUESTS} requests are enough for a certificate: report it as a bug"
            ))),
        }
    }

    /// Lets no more requests be sent. Those that are under way come to their end, so that none of
    /// them arrives after everything was removed.
    pub fn interrupt(&self) {
        self.is_interrupted.store(true, Ordering::Relaxed);
    }

    /// Lets requests be sent again, to remove what was made.
    pub fn begin_removal(&self) {
        self.is_interrupted.store(false, Ordering::Relaxed);
    }

    pub fn requests(&self) -> u32 {
        self.requests.load(Ordering::Relaxed)
    }

    pub fn note(&self, key: &str) {
        self.keys.lock().insert(key.to_owned());
    }

    /// Returns whether no key can have been made.
    pub fn is_empty(&self) -> bool {
        self.keys.lock().is_empty()
    }

    /// Returns the keys that have to be removed, and takes them for removed.
    pub fn take(&self) -> BTreeSet<String> {
        std::mem::take(&mut self.keys.lock())
    }
}
