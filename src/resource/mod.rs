//! The thing that a lock is there to protect, as a process of its own.
//!
//! A lock is a hint: whoever holds it may be frozen, cut off or wrong about
//! the time, and write long after somebody else was granted the same lock.
//! Only the resource sees every write in one order, so only it can enforce
//! mutual exclusion: with the fence on, it refuses each write whose token does
//! not exceed all that it accepted before. With the fence off it is the unsafe
//! baseline that shows what the lock alone is worth.
//!
//! A write runs through `http` (is it well formed?) to `commit` (one thread,
//! one order, one fdatasync for many), which asks `state` (is it allowed?) and
//! appends to `log`; only then is it answered.

mod body;
mod client;
mod commit;
mod headers;
mod http;
mod limits;
mod log;
mod log_stream;
mod mark;
mod metrics;
#[cfg(debug_assertions)]
mod mutant;
mod recover;
mod reply;
mod state;
#[cfg(test)]
mod tests;

pub use client::{ClientError, ResourceClient, Stored, WriteAnswer, WriteAttempt};
pub use limits::{MAX_BODY_BYTES, MAX_KEY_BYTES, MAX_OWNER_BYTES};
pub use log::{FILE_NAME as LOG_FILE_NAME, LogError};
#[cfg(debug_assertions)]
pub use mutant::Mutant;

use crate::model::Fence;
use crate::serve;
use commit::CommitThread;
use log::Log;
use metrics::Metrics;
use state::State;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How long requests under way may take to end once shutdown is asked for.
const STOP_DEADLINE: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub struct Config {
    pub fence: Fence,
    /// Holds the log. Created where it does not exist.
    pub data_dir: PathBuf,
    /// A mistake made on purpose, so that a run can prove that its judge sees it.
    #[cfg(debug_assertions)]
    pub mutant: Option<Mutant>,
}

impl Config {
    pub fn new(fence: Fence, data_dir: impl Into<PathBuf>) -> Config {
        Config {
            fence,
            data_dir: data_dir.into(),
            #[cfg(debug_assertions)]
            mutant: None,
        }
    }
}

/// Every one of these ends the process that serves: after a failed write or
/// sync nobody knows what the disk holds, and no answer may pretend to.
#[derive(Debug, thiserror::Error)]
pub enum ResourceError {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("cannot start the thread that commits writes: {0}")]
    Thread(#[source] io::Error),
    #[error("the thread that commits writes died; its panic is printed above: report it as a bug")]
    ThreadDied,
    #[error(
        "the last batch of writes is still not on disk {} s after shutdown: \
         look at the disk under the data directory",
        STOP_DEADLINE.as_secs()
    )]
    Stuck,
}

/// A resource whose log has been read back: it is ready to be served.
pub struct Opened {
    log: Log,
    state: State,
}

/// Reads the log back. This blocks, and may: nothing is served before.
pub fn open(config: Config) -> Result<Opened, ResourceError> {
    let mut state = State::new(config.fence);
    #[cfg(debug_assertions)]
    state.misbehave(config.mutant);
    let log = Log::open(&config.data_dir, |row| state.replay(row))?;
    Ok(Opened { log, state })
}

impl Opened {
    /// Serves until `shutdown` is ready, then lets requests under way end.
    ///
    /// An error means that the disk failed: the caller must end the process
    /// without another attempt, and may print the error as it is.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), ResourceError> {
        let Opened { log, state } = self;
        let metrics = Arc::new(Metrics::new(state.fence()));
        let log_path = log.path().to_owned();
        let (committer, mut thread) =
            CommitThread::start(log, state, metrics.clone()).map_err(ResourceError::Thread)?;
        let stopping = CancellationToken::new();
        let router = http::router(http::App {
            committer: committer.clone(),
            metrics,
            log_path,
            stopping: stopping.clone(),
        });
        let mut server = pin!(serve::serve(listener, router, stopping.clone()));
        // Streams that follow the log end with this, however `serve` is left.
        let _stop = stopping.clone().drop_guard();

        tokio::select! {
            () = &mut server => return Ok(()),
            failure = thread.finished() => return failure,
            () = shutdown => {}
        }
        stopping.cancel();
        // Who has not finished by then is cut off; what it wrote is either
        // acknowledged and durable, or unknown to it.
        let _ = timeout(STOP_DEADLINE, server).await;
        let stopped = async {
            committer.stop().await;
            thread.finished().await
        };
        timeout(STOP_DEADLINE, stopped)
            .await
            .map_err(|_| ResourceError::Stuck)?
    }
}
