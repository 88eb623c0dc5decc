mod keys;
mod link;
mod lua;
mod notify;
mod patience;
mod plain;
mod queue;
mod settings;
mod subscriptions;
#[cfg(debug_assertions)]
mod token_first;
mod unsafe_release;
mod wakes;

pub use keys::{fence_key, lock_key};
pub(super) use link::{RedisLink, problem_of};
pub use link::{client, connect_problem_of};
pub(super) use lua::Lua;
pub use settings::RedisSettings;

use super::{
    Ask, Attempt, Grant, LockBackend, LockError, LockProblem, RenewOutcome, Term, UnsafeRelease,
    WaitLine,
};
use crate::model::{FencingToken, ReleaseOutcome, WaitPolicy};
use async_trait::async_trait;
use notify::NotifyLine;
use plain::{Announce, Plain};
use prometheus_client::metrics::counter::Counter;
use queue::QueueLine;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A lock on one Redis: simple and quick, and gone with its server.
///
/// The fence counter is as durable as that server and no more. FLUSHALL,
/// eviction, a restart without an append-only file or a failover to a replica
/// that lags behind set it back, and tokens start again below those that were
/// already handed out: the resource then refuses the rightful holder, and
/// where it forgot as well, a stale writer looks young. The counter never
/// expires, for the same reason, and so a key that was locked once costs a
/// few bytes for good.
///
/// There are two remedies, and they go together. An append-only file that is
/// written through (`appendonly yes`, `appendfsync always`; see
/// `compose/redis-durable.yml`) lets the counter survive a restart. A
/// [floor](crate::model::FenceFloor::ServerClock) keeps tokens growing after
/// everything else that can be forgotten, by the server's clock, and lets idle
/// counters expire. Neither helps against a replica that takes over with a
/// lock that it never heard of: then there are two holders, and the token of
/// the second has to be the higher one, which a clock that runs behind does
/// not give.
pub struct RedisBackend {
    link: Arc<RedisLink>,
    renew: Lua,
    way: Way,
}

/// How a lock is granted, waited for and given back.
enum Way {
    Spin(Plain),
    Notify(NotifyLine),
    Queue(QueueLine),
}

const NAME: &str = "redis";

impl RedisBackend {
    /// Connects at the first use: a server that is not there yet is no error here.
    pub fn new(address: &str, settings: RedisSettings) -> Result<RedisBackend, LockError> {
        let link = RedisLink::new(address, settings, Counter::default());
        let link = link.map_err(|problem| LockError {
            backend: NAME,
            node: address.to_owned(),
            key: String::new(),
            problem,
        })?;
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
            .and_then(|number: i64| match number {
                1 => Ok(RenewOutcome::Renewed { until }),
                0 => Ok(RenewOutcome::Expired),
                -1 => Ok(RenewOutcome::Superseded),
                _ => Err(LockProblem::BadAnswer(number.to_string())),
            })
            .map_err(|problem| self.error(ask.key, problem))
    }

    async fn release(&self, key: &str, owner: &str) -> Result<ReleaseOutcome, LockError> {
        let outcome = match &self.way {
            Way::Spin(plain) => plain.release(key, owner, Announce::No).await,
            Way::Notify(line) => line.plain.release(key, owner, Announce::Yes).await,
            Way::Queue(line) => line.release(key, owner).await,
        };
        outcome.map_err(|problem| self.error(key, problem))
    }

    fn unsafe_release(&self) -> Option<&dyn UnsafeRelease> {
        Some(self)
    }
}

fn lock_error(link: &RedisLink, key: &str, problem: LockProblem) -> LockError {
    LockError {
        backend: NAME,
        node: link.node().to_owned(),
        key: key.to_owned(),
        problem,
    }
}

/// `asked_at`: from before the holder could hold it.
fn granted_until(token: FencingToken, asked_at: Instant, ttl: Duration) -> Grant {
    let term = Term::Until(asked_at + ttl);
    Grant {
        token,
        asked_at,
        ttl,
        term,
    }
}

fn read_release(number: i64) -> Result<ReleaseOutcome, LockProblem> {
    match number {
        1 => Ok(ReleaseOutcome::Released),
        0 => Ok(ReleaseOutcome::Expired),
        -1 => Ok(ReleaseOutcome::Superseded),
        _ => Err(LockProblem::BadAnswer(number.to_string())),
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
