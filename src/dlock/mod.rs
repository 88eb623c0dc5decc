//! The lock library.
//!
//! A lock over a network is a hint. Between "you have it" and the moment a
//! write lands, the holder can be frozen, its clock can jump, its packets can
//! wait in a queue; the lock runs out meanwhile and somebody else gets it, and
//! no client can rule that out for itself. What counts is the
//! [fencing token](crate::model::FencingToken) that comes with each grant: it
//! grows from grant to grant, the holder sends it along with each write, and
//! the resource refuses one that runs backwards. The lock keeps the usual case
//! orderly; the token makes the unusual case safe.
//!
//! ```no_run
//! use fencepost::dlock::{self, LockClient, LockMetrics, LockSettings, keep_renewed};
//! use fencepost::model::{Backend, LockOptions, ReleaseOutcome};
//! use std::time::Duration;
//! use tokio::time::Instant;
//!
//! # async fn write_with(token: fencepost::model::FencingToken) {}
//! # async fn example() -> Result<(), dlock::LockError> {
//! let options = LockOptions { backend: Backend::Redis, ..LockOptions::default() };
//! let backend = dlock::open(&options, &["127.0.0.1:6379".to_owned()])?;
//! let settings = LockSettings { ttl: Duration::from_secs(10), seed: 1 };
//! let locks = LockClient::new(backend, settings, LockMetrics::default())?;
//!
//! let deadline = Instant::now() + Duration::from_secs(5);
//! let lease = locks.acquire("account-42", deadline).await?;
//! tokio::select! {
//!     () = write_with(lease.fence()) => {}
//!     reason = keep_renewed(&lease, || {}) => eprintln!("stop working: {reason}"),
//! }
//! match lease.release().await {
//!     ReleaseOutcome::Released => {}
//!     late => eprintln!("somebody may have been there meanwhile: {late:?}"),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! | | |
//! |---|---|
//! | [`open`] | from [options](crate::model::LockOptions) and servers to a backend |
//! | [`LockClient`] | waiting, deadlines, cancelling, cleaning up |
//! | [`Lease`] | one grant: its token, how long to believe in it, renewal, release |
//! | [`keep_renewed`] | the watchdog, beside the work for as long as it is polled |
//! | [`ReentrantLocks`] | one owner takes its lock again |
//! | [`LockMetrics`] | what one process did with its locks, for Prometheus |
//! | [`LockBackend`], [`WaitLine`] | the seam: what a new kind of lock server has to answer |

mod backend;
mod belief;
mod client;
mod error;
mod etcd;
mod in_flight;
mod lease;
mod metrics;
#[cfg(debug_assertions)]
mod mutant;
mod observe;
mod open;
mod redis;
mod redlock;
mod reentrant;
mod requests;
mod wait;
mod watchdog;

pub use self::etcd::{EtcdBackend, EtcdLockApiBackend, EtcdSettings};
pub use self::redis::{RedisBackend, RedisSettings};
pub use backend::{Ask, Attempt, Grant, LockBackend, RenewOutcome, Term, UnsafeRelease, WaitLine};
pub use belief::{Belief, LostReason};
pub use client::{LockClient, LockSettings, MAX_KEY_BYTES, MAX_TTL};
pub use error::{LockError, LockProblem};
pub use lease::{Lease, RenewError};
pub use metrics::LockMetrics;
#[cfg(debug_assertions)]
pub use mutant::Mutant;
pub use observe::{observe_etcd, observe_redis};
pub use open::open;
#[cfg(debug_assertions)]
pub use open::open_misbehaving;
pub use redlock::{RedlockBackend, RedlockSettings, TokenScheme};
pub use reentrant::{Hold, ReentrantLocks, Released};
pub use requests::Requests;
pub use watchdog::keep_renewed;

/// How to reach the servers and where things lie there, for those who look at
/// or fill them past the locks.
pub mod servers {
    pub use super::etcd::{check_address as check_etcd_address, line_prefix as etcd_line_prefix};
    pub use super::redis::{
        client as redis_client, connect_problem_of as redis_connect_problem,
        fence_key as redis_fence_key, lock_key as redis_lock_key,
    };
}
