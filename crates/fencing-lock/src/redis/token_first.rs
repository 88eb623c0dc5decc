//! The implementation of [`Mutant::TokenBeforeGrant`], in test builds only.

use super::link::RedisLink;
use super::{Lua, granted_until, ttl_ms};
use crate::{Ask, Attempt, LockProblem, Mutant};
use crate::{FenceFloor, FencingToken};
use parking_lot::Mutex;
use redis::cmd;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

/// Draws a token, and then tries for the lock until it is granted.
pub(super) struct TokenFirst {
    draw: Lua,
    /// The tokens that were drawn for a key and are not granted yet.
    drawn: Mutex<HashMap<String, u64>>,
}

impl TokenFirst {
    pub(super) fn of(mutant: Option<Mutant>) -> Option<TokenFirst> {
        (mutant == Some(Mutant::TokenBeforeGrant)).then(|| TokenFirst {
            draw: Lua::new(concat!(
                include_str!("scripts/token.lua"),
                "return {ARGV[2] * 8 + 1, next_token(KEYS[1], ARGV[1])}"
            )),
            drawn: Mutex::default(),
        })
    }

    pub(super) async fn try_acquire(
        &self,
        link: &RedisLink,
        floor: FenceFloor,
        ask: Ask<'_>,
    ) -> Result<Attempt, LockProblem> {
        let drawn = self.drawn.lock().remove(ask.key);
        let token = match drawn {
            Some(token) => token,
            None => {
                let fence = [super::fence_key(ask.key)];
                let reply = link.run(&self.draw, &fence, &[floor.word()]).await?;
                let [token] = reply.numbers()?;
                token.unsigned_abs()
            }
        };
        let asked_at = Instant::now();
        let mut grant = cmd("SET");
        grant.arg(super::lock_key(ask.key)).arg(ask.owner);
        grant.arg("NX").arg("PX").arg(ttl_ms(ask.ttl));
        let granted: Option<String> = link.query(&grant).await?;
        if granted.is_some() {
            let token = FencingToken(token);
            return granted_until(token, asked_at, ask.ttl).map(Attempt::Granted);
        }
        self.drawn.lock().insert(ask.key.to_owned(), token);
        let retry_in = Duration::MAX;
        Ok(Attempt::Busy { retry_in })
    }
}
