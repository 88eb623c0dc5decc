//! The resource that a lock protects, as a separate process.
//!
//! A lock is a hint: its holder may be frozen, cut off or wrong about the time, and write long
//! after another worker was granted the same lock. Only the resource sees every write in one
//! order, so only it can enforce mutual exclusion: with the fence on, it refuses each write
//! whose token does not exceed all that it accepted before. With the fence off it is the unsafe
//! baseline that shows what the lock alone is worth.
//!
//! A write goes through `http` (is it well formed?) to `commit` (one thread, one order, one
//! fdatasync for many), which asks `state` (is it allowed?) and appends to `log`; only then is
//! it answered.

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
mod row_line;
pub mod s3;
mod state;
mod storage;
#[cfg(test)]
mod tests;

pub use client::{
    ClientError, PlayedClient, PlayedResource, ResourceClient, Stored, WriteAnswer, chain, halves,
    open_bucket,
};
pub use limits::{MAX_BODY_BYTES, MAX_KEY_BYTES, MAX_OWNER_BYTES};
pub use log::LogError;
#[cfg(debug_assertions)]
pub use mutant::Mutant;
pub use state::WriteRequest;

use crate::model::Fence;
use axum::Router;
use bounded_io::serve;
use commit::{CommitThread, Committer, Ledger};
use log::Log;
use metrics::Metrics;
use state::State;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// The time limit for each of the three steps of a stop: requests end, the last batch is synced,
/// and followers get the rest. Together they take less than the 10 s that `docker stop` waits.
const STOP_DEADLINE: Duration = Duration::from_secs(3);

#[derive(Clone, Debug)]
pub struct Config {
    pub fence: Fence,
    /// The folder of the log. It is created if it does not exist.
    pub data_dir: PathBuf,
    /// A deliberate defect, so that a run can prove that its judge finds it.
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

/// The errors of the resource. Each ends the serving process: after a failed write or sync
/// nobody knows what the disk holds, and no answer may claim to know it.
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

/// A resource whose log has been read back, so that it can be served.
pub struct Opened {
    log: Log,
    state: State,
}

/// Reads the log back. It may block, because nothing is served before.
pub fn open(config: Config) -> Result<Opened, ResourceError> {
    let mut state = State::new(config.fence);
    #[cfg(debug_assertions)]
    state.misbehave(config.mutant);
    let log = Log::open(&config.data_dir, |row| state.replay(row))?;
    Ok(Opened { log, state })
}

impl Opened {
    /// Serves until `shutdown` is ready, then lets requests in progress end.
    ///
    /// An error means that the disk failed: the caller must end the process without another
    /// attempt, and may print the error as it is.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), ResourceError> {
        let Opened { log, state } = self;
        let metrics = Arc::new(Metrics::new(state.fence()));
        let log_path = log.path().to_owned();
        let (committer, thread) =
            CommitThread::start(log, state, metrics.clone()).map_err(ResourceError::Thread)?;
        let router = http::router(http::App {
            committer: committer.clone(),
            metrics,
            log_path,
        });
        serve_until(listener, router, committer, thread, shutdown).await
    }
}

/// Serves until `shutdown` is ready or the commit thread ends.
async fn serve_until<L: Ledger>(
    listener: TcpListener,
    router: Router,
    committer: Committer<L>,
    mut thread: CommitThread,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ResourceError> {
    let stopping = CancellationToken::new();
    let mut server = tokio::spawn(serve::serve(listener, router, stopping.clone()));
    // This ends the server, however this returns.
    let _stop = stopping.clone().drop_guard();

    tokio::select! {
        _ = &mut server => return Ok(()),
        failure = thread.finished() => return failure,
        () = shutdown => {}
    }
    stopping.cancel();
    // Clients that have not finished by then are cut off. Each of their writes is either
    // acknowledged and durable, or its outcome is unknown to them.
    let _ = timeout(STOP_DEADLINE, committer.settled()).await;
    let stopped = async {
        committer.stop().await;
        thread.finished().await
    };
    timeout(STOP_DEADLINE, stopped)
        .await
        .map_err(|_| ResourceError::Stuck)??;
    // Now the log has its end, and those who follow it get the rest of it.
    let _ = timeout(STOP_DEADLINE, server).await;
    Ok(())
}
