use super::Lua;
#[cfg(debug_assertions)]
use crate::dlock::mutant::{self, Mutant};
use crate::model::{FenceFloor, WaitPolicy};
use std::time::Duration;

/// How a [`RedisBackend`](super::RedisBackend) waits, counts and gives up.
///
/// All who use a key should wait in the same way. Where they do not, the lock
/// stays safe, but a release of the one kind is not heard by the other, which
/// then gets its turn when it asks again by itself.
///
/// ```no_run
/// use fencepost::dlock::{LockClient, LockMetrics, LockSettings, RedisBackend, RedisSettings};
/// use fencepost::model::{FenceFloor, WaitPolicy};
/// use std::{sync::Arc, time::Duration};
/// use tokio::time::Instant;
///
/// # async fn example() -> Result<(), fencepost::dlock::LockError> {
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
    /// Looked at ten times in that time, so it can take a tenth longer.
    pub response_timeout: Duration,
    pub wait: WaitPolicy,
    pub fence_floor: FenceFloor,
    /// How many may stand in the line for one key under
    /// [`WaitPolicy::Queue`], those of other processes included. Who comes
    /// later is told [`QueueFull`](crate::dlock::LockProblem::QueueFull).
    pub queue_max: usize,
    /// A mistake made on purpose, so that a test can prove that it is seen.
    #[cfg(debug_assertions)]
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
            #[cfg(debug_assertions)]
            mutant: None,
        }
    }
}

impl RedisSettings {
    pub(in crate::dlock) fn script(&self, code: &'static str) -> Lua {
        #[cfg(debug_assertions)]
        let code = mutant::bend(self.mutant, code);
        Lua::new(code)
    }
}
