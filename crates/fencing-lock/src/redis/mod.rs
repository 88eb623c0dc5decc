mod answer;
#[cfg(feature = "servers")]
pub mod bounded;
mod cohort;
mod ears;
#[cfg(feature = "servers")]
mod frames;
mod keys;
mod link;
mod lua;
mod notify;
mod options;
mod plain;
mod queue;
mod reply;
mod request;
mod settings;
mod sharded;
mod subscriptions;
#[cfg(all(debug_assertions, feature = "mutants"))]
mod token_first;
mod undo;
#[cfg(feature = "unsafe-modes")]
mod unsafe_release;
mod wire;

pub use cohort::CohortSettings;
#[cfg(any(feature = "redlock", feature = "servers"))]
pub use keys::fence_key;
#[cfg(feature = "redlock")]
pub(super) use keys::gone_key;
pub use keys::lock_key;
#[cfg(feature = "servers")]
pub use keys::lock_of;
#[cfg(feature = "redlock")]
pub(super) use link::RedisLink;
#[cfg(not(feature = "redlock"))]
use link::RedisLink;
#[cfg(feature = "servers")]
pub use link::{client, connect_problem_of, problem_of};
pub use lua::Lua;
pub use options::{FenceFloor, WaitPolicy};
pub(super) use reply::Reply;
pub use settings::RedisSettings;
pub use sharded::ShardedRedisBackend;
#[cfg(feature = "redlock")]
pub(super) use undo::Heir;
pub(super) use undo::Release;

use super::{
    Ask, Attempt, Env, Grant, LockBackend, LockError, LockProblem, RenewOutcome, Term, WaitLine,
};
#[cfg(feature = "unsafe-modes")]
use crate::UnsafeRelease;
use crate::{FencingToken, ReleaseOutcome};
use async_trait::async_trait;
use notify::NotifyLine;
use plain::{Announce, Plain};
use prometheus_client::metrics::counter::Counter;
use queue::QueueLine;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A lock on one Redis: simple and quick, and lost with its server.
///
/// The fence counter is only as durable as that server. FLUSHALL, eviction, a restart
/// without an append-only file or a failover to a replica that lags behind set it back,
/// and tokens start again below those that were already granted: the resource then
/// refuses the rightful holder, and if the resource lost its data as well, a stale writer
/// looks like a current one. For the same reason the counter never expires, so a key that
/// was locked once costs a few bytes for good.
///
/// There are two remedies, which go together. An append-only file that is written through
/// (`appendonly yes`, `appendfsync always`; see `compose/redis-durable.yml`) lets the
/// counter survive a restart. A [floor](crate::FenceFloor::ServerClock) by the server's
/// clock keeps tokens growing after every other loss of the counter, and lets idle
/// counters expire. Neither helps against a replica that takes over without having
/// received a lock: then there are two holders, and the second one needs the higher
/// token, which a clock that runs behind does not give.
pub struct RedisBackend {
    link: Arc<RedisLink>,
    renew: Lua,
    way: Way,
}

/// The way in which a lock is granted, waited for and released.
enum Way {
    Spin(Plain),
    Notify(NotifyLine),
    Queue(QueueLine),
}

const NAME: &str = "redis";

impl RedisBackend {
    /// Does not connect before the first use, so an unreachable server is not an error
    /// here.
    pub fn new(address: &str, settings: RedisSettings) -> Result<RedisBackend, LockError> {
        RedisBackend::with_env(address, settings, Env::default())
    }

    /// Does the same in surroundings that may be simulated.
    pub fn with_env(
        address: &str,
        settings: RedisSettings,
        env: Env,
    ) -> Result<RedisBackend, LockError> {
        RedisBackend::counting(address, settings, env, Counter::default())
    }

    /// Does the same and counts its requests together with those of others.
    fn counting(
        address: &str,
        settings: RedisSettings,
        env: Env,
        requests: Counter,
    ) -> Result<RedisBackend, LockError> {
        let link = RedisLink::new(address, settings, env, requests);
        let link = link.map_err(|problem| LockError::new(NAME, address, "", problem))?;
        let link = Arc::new(link);
        let plain = || Plain::new(link.clone(), settings);
        Ok(RedisBackend {
            renew: settings.script(include_str!("scripts/renew.lua")),
            way: match settings.wait {
                WaitPolicy::Spin => Way::Spin(plain()),
                WaitPolicy::Notify => Way::Notify(NotifyLine::new(link.clone(), plain())),
                WaitPolicy::Queue => Way::Queue(QueueLine::new(link.clone(), settings)),
            },
            link,
        })
    }

    fn release_of(&self, key: &str, owner: &str) -> Arc<Release> {
        Arc::new(match &self.way {
            Way::Spin(plain) => plain.release(key, owner, Announce::No),
            Way::Notify(line) => line.plain.release(key, owner, Announce::Yes),
            Way::Queue(line) => line.leave.release(key, owner),
        })
    }
}

#[async_trait]
impl LockBackend for RedisBackend {
    fn name(&self) -> &'static str {
        NAME
    }

    fn node(&self) -> &str {
        self.link.node()
    }

    fn requests(&self) -> Counter {
        self.link.requests()
    }

    fn env(&self) -> &Env {
        self.link.env()
    }

    async fn try_acquire(&self, ask: Ask<'_>) -> Result<Attempt, LockError> {
        let attempt = match &self.way {
            Way::Spin(plain) | Way::Notify(NotifyLine { plain, .. }) => {
                plain.try_acquire(ask).await
            }
            Way::Queue(line) => line.try_acquire(ask).await,
        };
        attempt.map_err(|problem| self.error(ask.key, problem))
    }

    fn line(&self) -> Option<&dyn WaitLine> {
        match &self.way {
            Way::Spin(_) => None,
            Way::Notify(line) => Some(line),
            Way::Queue(line) => Some(line),
        }
    }

    async fn renew(&self, ask: Ask<'_>) -> Result<RenewOutcome, LockError> {
        let keys = [lock_key(ask.key)];
        let arguments = [ask.owner, &ttl_ms(ask.ttl)];
        let until = Instant::now() + ask.ttl;
        let answer = self.link.run(&self.renew, &keys, &arguments).await;
        answer
            .and_then(|reply| match reply.code {
                1 => Ok(RenewOutcome::Renewed { until }),
                0 => Ok(RenewOutcome::Expired),
                2 => Ok(RenewOutcome::Superseded),
                _ => Err(reply.is_strange()),
            })
            .inspect(|outcome| {
                if let Way::Queue(line) = &self.way {
                    line.renewed(ask, *outcome);
                }
            })
            .map_err(|problem| self.error(ask.key, problem))
    }

    async fn release(&self, key: &str, owner: &str) -> Result<ReleaseOutcome, LockError> {
        if let Way::Queue(line) = &self.way
            && line.pass_on(key, owner)
        {
            return Ok(ReleaseOutcome::Released);
        }
        let answer = self.link.release(self.release_of(key, owner)).await;
        answer
            .and_then(read_release)
            .map_err(|problem| self.error(key, problem))
    }

    async fn abandon(&self, key: &str, owner: &str) -> Result<(), LockError> {
        let undone = self.link.abandon(self.release_of(key, owner)).await;
        undone.map_err(|problem| self.error(key, problem))
    }

    #[cfg(feature = "unsafe-modes")]
    fn unsafe_release(&self) -> Option<&dyn UnsafeRelease> {
        Some(self)
    }
}

fn lock_error(link: &RedisLink, key: &str, problem: LockProblem) -> LockError {
    LockError::new(NAME, link.node(), key, problem)
}

/// Makes a grant. `asked_at` is from before the lock could be held.
fn granted_until(
    token: FencingToken,
    asked_at: Instant,
    ttl: Duration,
) -> Result<Grant, LockProblem> {
    Grant::new(token, asked_at, ttl, Term::Until(asked_at + ttl))
}

fn read_release(reply: Reply) -> Result<ReleaseOutcome, LockProblem> {
    match reply.code {
        1 => Ok(ReleaseOutcome::Released),
        0 => Ok(ReleaseOutcome::Expired),
        2 => Ok(ReleaseOutcome::Superseded),
        _ => Err(reply.is_strange()),
    }
}

pub(super) fn ttl_ms(ttl: Duration) -> String {
    let ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
    ms.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_none_is_refused_and_named() {
        for wait in WaitPolicy::ALL {
            let settings = RedisSettings {
                wait,
                ..RedisSettings::default()
            };
            let error = RedisBackend::new("not an address", settings)
                .err()
                .expect("refused");
            assert!(error.to_string().contains("not an address"), "{error}");
            assert!(matches!(error.problem, LockProblem::BadAddress { .. }));
        }
    }
}
