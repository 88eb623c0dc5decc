//! A small S3 on the durable log of the resource, for objects that are written with conditions.
//!
//! A put is compared after its whole body has arrived, by the one thread that also writes, so
//! a comparison and its write are one step. Clients of S3 do not notice the difference, within
//! its limits: addresses with the bucket in the path, and objects of up to 64 KiB in one piece.

mod auth;
pub mod canonical;
mod http;
mod listing;
#[cfg(debug_assertions)]
mod mutant;
mod objects;
mod payload;
mod reply;
mod row;
mod store;

#[cfg(debug_assertions)]
pub use mutant::Mutant;
pub use row::{Action, Condition, S3Row};

use super::commit::CommitThread;
use super::log::Log;
use super::metrics::Metrics;
use super::{ResourceError, serve_until};
use crate::model::Fence;
use fencing_lock::AwsCredentials;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use store::{Change, Store};
use tokio::net::TcpListener;

/// The access key, and the secret, of a role that was not given others.
pub const DEFAULT_KEY: &str = "fencepost";
/// The bucket of a role that was not given another.
pub const DEFAULT_BUCKET: &str = "fencepost";

pub struct Config {
    /// The folder of the log. It is created if it does not exist.
    pub data_dir: PathBuf,
    pub credentials: AwsCredentials,
    /// A bucket that is there from the start.
    pub bucket: String,
    /// A deliberate defect, so that a run can prove that it is found.
    #[cfg(debug_assertions)]
    pub mutant: Option<Mutant>,
}

/// A store whose log has been read back, so that it can be served.
pub struct Opened {
    log: Log,
    store: Store,
    config: Config,
}

/// Reads the log back. It may block, because nothing is served before.
pub fn open(config: Config) -> Result<Opened, ResourceError> {
    let mut store = Store::default();
    let log = Log::open(&config.data_dir, |row| store.replay(row))?;
    Ok(Opened { log, store, config })
}

impl Opened {
    /// Serves until `shutdown` is ready. An error means that the disk failed.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), ResourceError> {
        let metrics = Arc::new(Metrics::new(Fence::On));
        let log_path = self.log.path().to_owned();
        let (committer, thread) = CommitThread::start(self.log, self.store, metrics.clone())
            .map_err(ResourceError::Thread)?;
        // If the thread is gone already, its error is reported below.
        let _ = committer
            .write(Change::bucket(Action::MakeBucket, &self.config.bucket))
            .await;
        let router = http::router(http::App {
            committer: committer.clone(),
            metrics,
            log_path,
            config: self.config,
        });
        serve_until(listener, router, committer, thread, shutdown).await
    }
}

impl Change {
    fn bucket(action: Action, bucket: &str) -> Change {
        Change {
            action,
            bucket: bucket.to_owned(),
            key: String::new(),
            condition: Condition::None,
            meta: Default::default(),
            body: Default::default(),
            time_s: now_s(),
        }
    }
}

/// Returns what is wrong with the name of a bucket.
pub fn bucket_problem(name: &str) -> Option<&'static str> {
    let is_letter = |letter: char| {
        letter.is_ascii_lowercase() || letter.is_ascii_digit() || matches!(letter, '-' | '.')
    };
    let is_name = (3..=63).contains(&name.len()) && name.chars().all(is_letter);
    let is_bad = !is_name || name.starts_with(['-', '.']);
    is_bad.then_some("a bucket has 3 to 63 lower-case letters, digits, - and .")
}

fn now_s() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}

/// Returns the SHA-256 in hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}
