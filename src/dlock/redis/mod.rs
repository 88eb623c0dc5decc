mod link;
mod lua;

pub(super) use link::{RedisLink, client, connect_problem_of, problem_of};
pub(super) use lua::Lua;

use super::{Ask, Attempt, Grant, LockBackend, LockError, LockProblem, RenewOutcome, Term};
use crate::model::{FencingToken, ReleaseOutcome};
use async_trait::async_trait;
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
pub struct RedisBackend {
    link: RedisLink,
    acquire: Lua,
    renew: Lua,
    release: Lua,
}

#[derive(Clone, Copy, Debug)]
pub struct RedisSettings {
    pub connect_timeout: Duration,
    pub response_timeout: Duration,
}

impl Default for RedisSettings {
    fn default() -> RedisSettings {
        RedisSettings {
            connect_timeout: Duration::from_secs(1),
            response_timeout: Duration::from_secs(1),
        }
    }
}

const NAME: &str = "redis";

impl RedisBackend {
    /// Connects at the first use: a server that is not there yet is no error here.
    pub fn new(address: &str, settings: RedisSettings) -> Result<RedisBackend, LockError> {
        let link = RedisLink::new(address, settings).map_err(|problem| LockError {
            backend: NAME,
            node: address.to_owned(),
            key: String::new(),
            problem,
        })?;
        Ok(RedisBackend {
            link,
            acquire: Lua::new(include_str!("scripts/acquire.lua")),
            renew: Lua::new(include_str!("scripts/renew.lua")),
            release: Lua::new(include_str!("scripts/release.lua")),
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

    async fn try_acquire(&self, ask: Ask<'_>) -> Result<Attempt, LockError> {
        let keys = [lock_key(ask.key), fence_key(ask.key)];
        let arguments = [ask.owner, &ttl_ms(ask.ttl)];
        // The lease counts from before the request was sent. The server starts
        // its own count later, so the holder gives up first.
        let asked_at = Instant::now();
        let answer = self.link.run(&self.acquire, &keys, &arguments).await;
        answer
            .and_then(|(word, number): (String, i64)| read_attempt(&word, number))
            .map(|answer| match answer {
                Answer::Granted(token) => Attempt::Granted(Grant {
                    token,
                    asked_at,
                    ttl: ask.ttl,
                    term: Term::Until(asked_at + ask.ttl),
                }),
                Answer::Busy { retry_in } => Attempt::Busy { retry_in },
            })
            .map_err(|problem| self.error(ask.key, problem))
    }

    async fn renew(&self, ask: Ask<'_>) -> Result<RenewOutcome, LockError> {
        let arguments = [ask.owner, &ttl_ms(ask.ttl)];
        let until = Instant::now() + ask.ttl;
        let answer = self
            .link
            .run(&self.renew, &[lock_key(ask.key)], &arguments)
            .await;
        answer
            .and_then(|word: String| match word.as_str() {
                "renewed" => Ok(RenewOutcome::Renewed { until }),
                "expired" => Ok(RenewOutcome::Expired),
                "superseded" => Ok(RenewOutcome::Superseded),
                _ => Err(LockProblem::BadAnswer(word)),
            })
            .map_err(|problem| self.error(ask.key, problem))
    }

    async fn release(&self, key: &str, owner: &str) -> Result<ReleaseOutcome, LockError> {
        let answer = self
            .link
            .run(&self.release, &[lock_key(key)], &[owner])
            .await;
        answer
            .and_then(|word: String| match word.as_str() {
                "released" => Ok(ReleaseOutcome::Released),
                "expired" => Ok(ReleaseOutcome::Expired),
                "superseded" => Ok(ReleaseOutcome::Superseded),
                _ => Err(LockProblem::BadAnswer(word)),
            })
            .map_err(|problem| self.error(key, problem))
    }
}

/// The braces are a hash tag: a Redis Cluster places a key by what stands
/// between them, so the lock and its counter share a slot and one script may
/// touch both.
pub(super) fn lock_key(key: &str) -> String {
    format!("lock:{{{key}}}")
}

pub(super) fn fence_key(key: &str) -> String {
    format!("fence:{{{key}}}")
}

pub(super) fn ttl_ms(ttl: Duration) -> String {
    let ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
    ms.to_string()
}

#[derive(Debug, PartialEq)]
enum Answer {
    Granted(FencingToken),
    Busy { retry_in: Duration },
}

/// The number is the token of a grant, or how many milliseconds a busy lock
/// has left (negative where it has no end).
fn read_attempt(word: &str, number: i64) -> Result<Answer, LockProblem> {
    match (word, u64::try_from(number)) {
        ("granted", Ok(token)) if token > 0 => Ok(Answer::Granted(FencingToken(token))),
        ("busy", left_ms) => Ok(Answer::Busy {
            retry_in: left_ms.map_or(Duration::MAX, Duration::from_millis),
        }),
        _ => Err(LockProblem::BadAnswer(format!("{word} {number}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_and_its_counter_share_a_slot() {
        assert_eq!(lock_key("account-42"), "lock:{account-42}");
        assert_eq!(fence_key("account-42"), "fence:{account-42}");
    }

    #[test]
    fn only_a_positive_token_is_a_grant() {
        assert_eq!(
            read_attempt("granted", 1),
            Ok(Answer::Granted(FencingToken(1)))
        );
        assert!(read_attempt("granted", 0).is_err());
        assert!(read_attempt("granted", -1).is_err());
        assert!(read_attempt("maybe", 1).is_err());
        assert_eq!(
            read_attempt("busy", -1),
            Ok(Answer::Busy {
                retry_in: Duration::MAX
            })
        );
    }

    #[test]
    fn an_address_that_is_none_is_refused_and_named() {
        let error = RedisBackend::new("not an address", RedisSettings::default())
            .err()
            .expect("refused");
        assert!(error.to_string().contains("not an address"), "{error}");
        assert!(matches!(error.problem, LockProblem::BadAddress { .. }));
    }
}
