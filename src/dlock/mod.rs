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
//! use fencepost::dlock::{LockClient, LockMetrics, LockSettings, RedisBackend, RedisSettings};
//! use std::{sync::Arc, time::Duration};
//! use tokio::time::Instant;
//!
//! # async fn example() -> Result<(), fencepost::dlock::LockError> {
//! let backend = RedisBackend::new("127.0.0.1:6379", RedisSettings::default())?;
//! let locks = LockClient::new(
//!     Arc::new(backend),
//!     LockSettings { ttl: Duration::from_secs(2), seed: 1 },
//!     LockMetrics::default(),
//! )?;
//! let deadline = Instant::now() + Duration::from_secs(5);
//! let lease = locks.acquire("account-42", deadline).await?;
//! println!("send {} with every write", lease.fence());
//! let outcome = lease.release().await;
//! println!("{outcome:?}");
//! # Ok(())
//! # }
//! ```
//!
//! [`LockBackend`] is the seam: a backend knows the wire, [`LockClient`] knows
//! waiting, cancelling and cleaning up, and [`Lease`] knows how long it may
//! believe in itself.

mod backend;
mod belief;
mod client;
mod error;
mod etcd;
mod in_flight;
mod lease;
mod metrics;
mod observe;
mod open;
mod redis;
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
pub use observe::{observe_etcd, observe_redis};
pub use open::open;
pub use watchdog::keep_renewed;
