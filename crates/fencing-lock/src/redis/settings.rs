use super::{CohortSettings, Lua};
#[cfg(all(debug_assertions, feature = "mutants"))]
use crate::mutant::{self, Mutant};
use crate::{FenceFloor, WaitPolicy};
use std::time::Duration;

/// The settings of a [`RedisBackend`](super::RedisBackend): its waits, tokens and time
/// limits.
///
/// All users of a key should wait in the same way. If they do not, the lock stays safe,
/// but the one kind does not learn of a release of the other kind, and gets its turn only
/// when it asks again by itself.
///
/// ```no_run
/// use fencing_lock::{LockClient, LockMetrics, LockSettings, RedisBackend, RedisSettings};
/// use fencing_lock::{FenceFloor, WaitPolicy};
/// use std::{sync::Arc, time::Duration};
/// use tokio::time::Instant;
///
/// # async fn example() -> Result<(), fencing_lock::LockError> {
/// let settings = RedisSettings {
///     // First come, first served; the 101st who wants to wait is refused at once.
///     wait: WaitPolicy::Queue,
///     queue_max: 100,
///     // Tokens go on growing even after FLUSHALL.
///     fence_floor: FenceFloor::ServerClock,
///     ..RedisSettings::default()
/// };
/// let locks = LockClient::new(
///     Arc::new(RedisBackend::new("127.0.0.1:6379", settings)?),
///     LockSettings { ttl: Duration::from_secs(2), seed: 1 },
///     LockMetrics::default(),
/// )?;
/// let lease = locks.acquire("account-42", Instant::now() + Duration::from_secs(5)).await?;
/// println!("send {} with every write", lease.fence());
/// lease.release().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RedisSettings {
    pub connect_timeout: Duration,
    /// Checked ten times in that time, so the wait can be a tenth longer.
    pub response_timeout: Duration,
    pub wait: WaitPolicy,
    pub fence_floor: FenceFloor,
    /// Limits how many may wait in the line for one key under [`WaitPolicy::Queue`],
    /// including those of other processes. Later ones get
    /// [`QueueFull`](crate::LockProblem::QueueFull).
    pub queue_max: usize,
    /// Lets the waiters of this process pass a lock on among themselves under
    /// [`WaitPolicy::Queue`]. `queue_max` then also limits how many wait for that.
    pub cohort: Option<CohortSettings>,
    /// A mistake made on purpose, so that a test can prove that the mistake is detected.
    #[cfg(all(debug_assertions, feature = "mutants"))]
    pub mutant: Option<Mutant>,
}

impl Default for RedisSettings {
    fn default() -> RedisSettings {
        RedisSettings {
            connect_timeout: Duration::from_secs(1),
            response_timeout: Duration::from_secs(1),
            wait: WaitPolicy::default(),
            fence_floor: FenceFloor::default(),
            queue_max: 10_000,
            cohort: None,
            #[cfg(all(debug_assertions, feature = "mutants"))]
            mutant: None,
        }
    }
}

impl RedisSettings {
    pub(crate) fn script(&self, code: &'static str) -> Lua {
        #[cfg(all(debug_assertions, feature = "mutants"))]
        let code = mutant::bend(self.mutant, code);
        Lua::new(code)
    }
}
