use super::keys::line_keys;
use super::link::{Open, RedisLink};
use super::{Lua, RedisSettings, granted_until, lock_error, read_release, ttl_ms};
use crate::dlock::{Ask, Attempt, Grant, LockError, LockProblem, WaitLine};
use crate::model::{FenceFloor, FencingToken, ReleaseOutcome};
use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// [`WaitPolicy::Queue`](crate::model::WaitPolicy::Queue): first come, first
/// served, by a line at the server.
///
/// A release hands the lock to the first in the line who is alive, in the same
/// step, and publishes that on the channel of that waiter's connection. Alive
/// means that its connection stands and that it confirmed its wait within the
/// last TTL, by the server's clock. So a process that died is passed over at
/// once, and one that is frozen after a TTL.
///
/// A hold that runs out is handed on by nobody; each waiter asks at that very
/// moment. It knows the moment as of its last confirmation: where the holder
/// changed since, and holds for a shorter time than the waiter would, the
/// waiter learns of it with its next confirmation.
pub(super) struct QueueLine {
    link: Arc<RedisLink>,
    floor: FenceFloor,
    queue_max: usize,
    stand: Lua,
    leave: Lua,
}

/// Longer than this, nobody trusts that the connection still brings messages.
const CONFIRM_AFTER_MAX: Duration = Duration::from_secs(5);

/// What the server says to somebody who stands in a line.
#[derive(Debug, PartialEq)]
enum Place {
    /// By this very request.
    Granted(FencingToken),
    /// By somebody's release before this request came.
    Handed(FencingToken),
    /// The present hold runs out after this.
    Waiting {
        retry_in: Duration,
    },
    Full {
        waiting: usize,
        retry_in: Duration,
    },
}

/// Whether the owner asked before, and may stand in the line already.
#[derive(Clone, Copy)]
enum Turn {
    First,
    Again,
}

impl QueueLine {
    pub(super) fn new(link: Arc<RedisLink>, settings: RedisSettings) -> QueueLine {
        QueueLine {
            link,
            floor: settings.fence_floor,
            queue_max: settings.queue_max,
            stand: settings.script(concat!(
                include_str!("scripts/token.lua"),
                include_str!("scripts/line.lua"),
                include_str!("scripts/stand.lua")
            )),
            leave: settings.script(concat!(
                include_str!("scripts/token.lua"),
                include_str!("scripts/line.lua"),
                include_str!("scripts/leave.lua")
            )),
        }
    }

    /// Past nobody: where others wait, a lock that is free is theirs.
    pub(super) async fn try_acquire(&self, ask: Ask<'_>) -> Result<Attempt, LockProblem> {
        let open = self.link.open().await?;
        let asked_at = Instant::now();
        // In a line without any places, nobody stays.
        let (keys, turn) = (line_keys(ask.key), Turn::First);
        match self.stand_on(&open, &keys, ask, 0, turn).await? {
            Place::Granted(token) | Place::Handed(token) => {
                Ok(Attempt::Granted(granted_until(token, asked_at, ask.ttl)))
            }
            Place::Waiting { retry_in } | Place::Full { retry_in, .. } => {
                Ok(Attempt::Busy { retry_in })
            }
        }
    }

    /// Gives the lock back, or leaves the line: whichever it is.
    pub(super) async fn release(
        &self,
        key: &str,
        owner: &str,
    ) -> Result<ReleaseOutcome, LockProblem> {
        let arguments = [owner, self.floor.word()];
        let answer = self
            .link
            .run(&self.leave, &line_keys(key), &arguments)
            .await;
        answer.and_then(read_release)
    }

    async fn stand_until_granted(&self, ask: Ask<'_>) -> Result<Grant, LockProblem> {
        let keys = line_keys(ask.key);
        // When the last confirmation that was answered had been sent. Who is
        // handed the lock sent no request for that; but it was alive then, and
        // the server counts from later. One that is still under way does not
        // count: the hand-off may be older.
        let mut confirmed_at = Instant::now();
        let mut turn = Turn::First;
        loop {
            let open = self.link.open().await?;
            let Ok(mut hand_off) = open.wakes.expect(ask.owner) else {
                continue;
            };
            loop {
                let sent_at = Instant::now();
                let place = self.stand_on(&open, &keys, ask, self.queue_max, turn);
                let retry_in = match place.await? {
                    Place::Granted(token) => return Ok(granted_until(token, sent_at, ask.ttl)),
                    Place::Handed(token) => {
                        return Ok(granted_until(token, confirmed_at, ask.ttl));
                    }
                    Place::Waiting { retry_in } => retry_in,
                    Place::Full { waiting, .. } => {
                        let max = self.queue_max;
                        return Err(LockProblem::QueueFull { waiting, max });
                    }
                };
                (confirmed_at, turn) = (sent_at, Turn::Again);
                tokio::select! {
                    biased;
                    word = hand_off.word() => match word {
                        Ok(token) => {
                            let token = read_token(token)?;
                            hand_off.acted_on();
                            return Ok(granted_until(token, confirmed_at, ask.ttl));
                        }
                        // The connection is over: back to our place on another one.
                        Err(_) => break,
                    },
                    () = sleep_until(sent_at + confirm_after(ask.ttl, retry_in)) => {}
                }
            }
        }
    }

    async fn stand_on(
        &self,
        open: &Arc<Open>,
        keys: &[String],
        ask: Ask<'_>,
        queue_max: usize,
        turn: Turn,
    ) -> Result<Place, LockProblem> {
        let arguments = [
            ask.owner,
            &ttl_ms(ask.ttl),
            self.floor.word(),
            &open.hand_offs,
            &queue_max.to_string(),
            match turn {
                Turn::First => "first",
                Turn::Again => "again",
            },
        ];
        let answer = self
            .link
            .run_on(open, &self.stand, keys, &arguments)
            .await?;
        read_place(answer)
    }
}

#[async_trait]
impl WaitLine for QueueLine {
    async fn wait(&self, ask: Ask<'_>) -> Result<Grant, LockError> {
        let granted = self.stand_until_granted(ask).await;
        granted.map_err(|problem| lock_error(&self.link, ask.key, problem))
    }
}

/// At half the TTL, so that whoever is handed the lock can use it for at least
/// as long; and when the present hold runs out, which is a millisecond after
/// the server says 0.
fn confirm_after(ttl: Duration, retry_in: Duration) -> Duration {
    let millisecond = Duration::from_millis(1);
    let often = (ttl / 2).clamp(millisecond, CONFIRM_AFTER_MAX);
    often.min(retry_in.saturating_add(millisecond))
}

/// See scripts/stand.lua for what the numbers say.
fn read_place((code, number, left_ms): (i64, i64, i64)) -> Result<Place, LockProblem> {
    // Negative where the hold has no end.
    let retry_in = u64::try_from(left_ms).map_or(Duration::MAX, Duration::from_millis);
    let bad = || LockProblem::BadAnswer(format!("{code} {number} {left_ms}"));
    let token = || match u64::try_from(number) {
        Ok(token) if token > 0 => Ok(FencingToken(token)),
        _ => Err(bad()),
    };
    match code {
        1 => Ok(Place::Granted(token()?)),
        2 => Ok(Place::Handed(token()?)),
        3 => Ok(Place::Waiting { retry_in }),
        4 => {
            let waiting = usize::try_from(number).map_err(|_| bad())?;
            Ok(Place::Full { waiting, retry_in })
        }
        _ => Err(bad()),
    }
}

fn read_token(word: &str) -> Result<FencingToken, LockProblem> {
    match word.parse() {
        Ok(token) if token > 0 => Ok(FencingToken(token)),
        _ => Err(LockProblem::BadAnswer(format!("handed over as {word:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_and_nonsense_is_not() {
        let place = |code, number, left_ms| read_place((code, number, left_ms));
        assert_eq!(place(1, 7, 0), Ok(Place::Granted(FencingToken(7))));
        assert_eq!(place(2, 7, 0), Ok(Place::Handed(FencingToken(7))));
        let retry_in = Duration::from_millis(9);
        assert_eq!(place(3, 0, 9), Ok(Place::Waiting { retry_in }));
        let waiting = 3;
        assert_eq!(place(4, 3, 9), Ok(Place::Full { waiting, retry_in }));
        let retry_in = Duration::MAX;
        assert_eq!(place(3, 0, -1), Ok(Place::Waiting { retry_in }));
        for (code, number) in [(1, 0), (2, -1), (4, -1), (5, 1)] {
            assert!(place(code, number, 0).is_err(), "{code} {number}");
        }
        assert!(read_token("0").is_err());
        assert!(read_token("seven").is_err());
    }

    #[test]
    fn a_wait_is_confirmed_at_half_the_ttl_or_when_the_hold_runs_out() {
        let ms = Duration::from_millis;
        assert_eq!(confirm_after(ms(2_000), ms(1_500)), ms(1_000));
        assert_eq!(confirm_after(ms(2_000), ms(30)), ms(31));
        assert_eq!(confirm_after(ms(2_000), Duration::MAX), ms(1_000));
        assert_eq!(confirm_after(ms(1), Duration::MAX), ms(1));
        assert_eq!(confirm_after(ms(60_000), ms(60_000)), CONFIRM_AFTER_MAX);
    }
}
