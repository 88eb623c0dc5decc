use super::keys::{fence_key, freed_channel, lock_key};
use super::link::RedisLink;
#[cfg(debug_assertions)]
use super::token_first::TokenFirst;
use super::{Lua, RedisSettings, granted_until, ttl_ms};
use crate::dlock::{Ask, Attempt, LockProblem};
use crate::model::{FenceFloor, FencingToken, ReleaseOutcome};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A lock without a line: one script grants it, and one gives it back.
pub(super) struct Plain {
    link: Arc<RedisLink>,
    floor: FenceFloor,
    acquire: Lua,
    release: Lua,
    #[cfg(debug_assertions)]
    token_first: Option<TokenFirst>,
}

/// Whether those who wait hear of a release.
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
            #[cfg(debug_assertions)]
            token_first: TokenFirst::of(settings.mutant),
        }
    }

    pub(super) async fn try_acquire(&self, ask: Ask<'_>) -> Result<Attempt, LockProblem> {
        #[cfg(debug_assertions)]
        if let Some(token_first) = &self.token_first {
            return token_first.try_acquire(&self.link, self.floor, ask).await;
        }
        let keys = [lock_key(ask.key), fence_key(ask.key)];
        let arguments = [ask.owner, &ttl_ms(ask.ttl), self.floor.word()];
        // The lease counts from before the request was sent. The server starts
        // its own count later, so the holder gives up first.
        let asked_at = Instant::now();
        let number: i64 = self.link.run(&self.acquire, &keys, &arguments).await?;
        Ok(match read_attempt(number) {
            Answer::Granted(token) => Attempt::Granted(granted_until(token, asked_at, ask.ttl)),
            Answer::Busy { retry_in } => Attempt::Busy { retry_in },
        })
    }

    pub(super) async fn release(
        &self,
        key: &str,
        owner: &str,
        announce: Announce,
    ) -> Result<ReleaseOutcome, LockProblem> {
        let keys = [lock_key(key)];
        let number = match announce {
            Announce::No => self.link.run(&self.release, &keys, &[owner]).await?,
            Announce::Yes => {
                let arguments = [owner, &freed_channel(key)];
                self.link.run(&self.release, &keys, &arguments).await?
            }
        };
        super::read_release(number)
    }
}

#[derive(Debug, PartialEq)]
enum Answer {
    Granted(FencingToken),
    Busy { retry_in: Duration },
}

/// See scripts/acquire.lua for what the number says.
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
