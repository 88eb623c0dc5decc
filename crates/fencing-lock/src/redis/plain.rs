use super::keys::{fence_key, freed_channel, gone_key, lock_key};
use super::link::RedisLink;
use super::reply::Reply;
#[cfg(all(debug_assertions, feature = "mutants"))]
use super::token_first::TokenFirst;
use super::undo::{Heir, Release};
use super::{Lua, RedisSettings, granted_until, ttl_ms};
use crate::leftovers::Request;
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
        let attempt = match read_attempt(&answer.await?)? {
            Answer::Granted(token) => Attempt::Granted(granted_until(token, asked_at, ask.ttl)?),
            Answer::Busy { retry_in } => Attempt::Busy { retry_in },
        };
        asked.settle();
        Ok(attempt)
    }

    pub(super) fn release(&self, key: &str, owner: &str, announce: Announce) -> Release {
        let channel = match announce {
            Announce::No => String::new(),
            Announce::Yes => freed_channel(key),
        };
        Release {
            script: self.release.clone(),
            key: key.to_owned(),
            owner: owner.to_owned(),
            keys: vec![lock_key(key)],
            arguments: vec![owner.to_owned(), channel],
            heir: Heir::IsTold,
        }
    }
}

#[derive(Debug, PartialEq)]
enum Answer {
    Granted(FencingToken),
    Busy { retry_in: Duration },
}

/// Reads what scripts/acquire.lua answers and explains.
fn read_attempt(reply: &Reply) -> Result<Answer, LockProblem> {
    let [number] = reply.numbers()?;
    match (reply.code, u64::try_from(number)) {
        (1, Ok(token @ 1..)) => Ok(Answer::Granted(FencingToken(token))),
        (2, left_ms) => Ok(Answer::Busy {
            // It is negative if the hold has no end.
            retry_in: left_ms.map_or(Duration::MAX, Duration::from_millis),
        }),
        _ => Err(reply.is_strange()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_positive_number_is_a_grant() {
        let read = |code, number| read_attempt(&Reply::of(code, &[number]));
        let busy = |retry_in| Ok(Answer::Busy { retry_in });
        assert_eq!(read(1, 1), Ok(Answer::Granted(FencingToken(1))));
        assert_eq!(read(2, -1), busy(Duration::MAX));
        assert_eq!(read(2, 0), busy(Duration::ZERO));
        assert_eq!(read(2, 2_000), busy(Duration::from_secs(2)));
        for (code, number) in [(1, 0), (1, -1), (0, 1), (3, 1)] {
            assert!(read(code, number).is_err(), "{code} {number}");
        }
    }
}
