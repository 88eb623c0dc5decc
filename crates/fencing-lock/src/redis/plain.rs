use super::keys::{fence_key, freed_channel, gone_key, lock_key};
use super::link::RedisLink;
#[cfg(all(debug_assertions, feature = "mutants"))]
use super::token_first::TokenFirst;
use super::undo::{Release, Request};
use super::{Lua, RedisSettings, granted_until, ttl_ms};
use crate::{Ask, Attempt, LockProblem};
use crate::{FenceFloor, FencingToken};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A lock without a line: one script grants it, and one releases it.
pub(super) struct Plain {
    link: Arc<RedisLink>,
    floor: FenceFloor,
    acquire: Lua,
    release: Lua,
    #[cfg(all(debug_assertions, feature = "mutants"))]
    token_first: Option<TokenFirst>,
}

/// Whether a release is announced to the waiters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Announce {
    No,
    Yes,
}

impl Plain {
    pub(super) fn new(link: Arc<RedisLink>, settings: RedisSettings) -> Plain {
        Plain {
            link,
            floor: settings.fence_floor,
            acquire: settings.script(concat!(
                include_str!("scripts/token.lua"),
                include_str!("scripts/acquire.lua")
            )),
            release: settings.script(include_str!("scripts/release.lua")),
            #[cfg(all(debug_assertions, feature = "mutants"))]
            token_first: TokenFirst::of(settings.mutant),
        }
    }

    pub(super) async fn try_acquire(&self, ask: Ask<'_>) -> Result<Attempt, LockProblem> {
        let open = self.link.open().await?;
        let asked = self.link.leftovers.asked(ask.owner, &open, Request::Try);
        #[cfg(all(debug_assertions, feature = "mutants"))]
        if let Some(token_first) = &self.token_first {
            let attempt = token_first.try_acquire(&self.link, self.floor, ask).await?;
            asked.settle();
            return Ok(attempt);
        }
        let keys = [
            lock_key(ask.key),
            fence_key(ask.key),
            gone_key(ask.key, ask.owner),
        ];
        let arguments = [ask.owner, &ttl_ms(ask.ttl), self.floor.word()];
        // The lease counts from before the request was sent. The server starts
        // its own count later, so the holder gives up first.
        let asked_at = Instant::now();
        let answer = self.link.run_on(&open, &self.acquire, &keys, &arguments);
        let attempt = match read_attempt(answer.await?) {
            Answer::Granted(token) => Attempt::Granted(granted_until(token, asked_at, ask.ttl)?),
            Answer::Busy { retry_in } => Attempt::Busy { retry_in },
        };
        asked.settle();
        Ok(attempt)
    }

    pub(super) fn release(&self, key: &str, owner: &str, announce: Announce) -> Release {
        let mut arguments = vec![owner.to_owned()];
        if announce == Announce::Yes {
            arguments.push(freed_channel(key));
        }
        Release {
            script: self.release.clone(),
            key: key.to_owned(),
            owner: owner.to_owned(),
            keys: vec![lock_key(key)],
            arguments,
        }
    }
}

#[derive(Debug, PartialEq)]
enum Answer {
    Granted(FencingToken),
    Busy { retry_in: Duration },
}

/// Reads the number that scripts/acquire.lua returns and explains.
fn read_attempt(number: i64) -> Answer {
    match u64::try_from(number) {
        Ok(0) => Answer::Busy {
            retry_in: Duration::MAX,
        },
        Ok(token) => Answer::Granted(FencingToken(token)),
        Err(_) => Answer::Busy {
            retry_in: Duration::from_millis(number.unsigned_abs() - 1),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_positive_number_is_a_grant() {
        let busy = |retry_in| Answer::Busy { retry_in };
        assert_eq!(read_attempt(1), Answer::Granted(FencingToken(1)));
        assert_eq!(read_attempt(0), busy(Duration::MAX));
        assert_eq!(read_attempt(-1), busy(Duration::ZERO));
        assert_eq!(read_attempt(-2_001), busy(Duration::from_secs(2)));
        read_attempt(i64::MIN);
    }
}
