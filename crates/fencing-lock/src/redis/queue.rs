use super::cohort::{CohortTurn, Cohorts};
use super::keys::{gone_key, line_keys, swept_key};
use super::link::{Open, RedisLink};
use super::reply::Reply;
use super::undo::{Heir, Release};
use super::{Lua, RedisSettings, granted_until, lock_error, ttl_ms};
#[cfg(all(debug_assertions, feature = "mutants"))]
use crate::Mutant;
use crate::leftovers::Request;
use crate::{Ask, Attempt, Grant, LastWord, LockError, LockProblem, RenewOutcome, WaitLine};
use crate::{FenceFloor, FencingToken};
use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// The line of [`WaitPolicy::Queue`](crate::WaitPolicy::Queue): first come, first served,
/// in a line at the server.
///
/// A release hands the lock to the first live waiter in the same step, and publishes that
/// on the channel of that waiter's connection. A waiter is live if its connection is open
/// and it confirmed its wait within the last TTL, by the server's clock. So a process
/// that died is passed over at once, and one that is frozen after a TTL.
///
/// Nobody hands on a hold that expires; each waiter asks at that very moment. It knows
/// the moment as of its last confirmation: if the holder has changed since, and holds for
/// a shorter time than the waiter would, the waiter learns of it with its next
/// confirmation.
pub(super) struct QueueLine {
    link: Arc<RedisLink>,
    floor: FenceFloor,
    queue_max: usize,
    stand: Lua,
    pub(super) leave: Leave,
    cohorts: Option<Cohorts>,
    /// Whether a hand-off counts from when it is heard of, for [`Mutant::LateHandOff`].
    #[cfg(all(debug_assertions, feature = "mutants"))]
    counts_from_hearing: bool,
}

/// The way out of the line, and of the lock.
#[derive(Clone)]
pub(super) struct Leave {
    script: Lua,
    floor: FenceFloor,
}

impl Leave {
    /// Releases the lock, or leaves the line if the lock is not held yet.
    pub(super) fn release(&self, key: &str, owner: &str) -> Release {
        Release {
            script: self.script.clone(),
            key: key.to_owned(),
            owner: owner.to_owned(),
            keys: line_keys(key).to_vec(),
            arguments: vec![owner.to_owned(), self.floor.word().to_owned()],
            heir: Heir::MayBeHere,
        }
    }
}

/// After this time nobody relies on the connection to still bring messages.
const CONFIRM_AFTER_MAX: Duration = Duration::from_secs(5);

/// A waiter whose connection broke tries for this long to come back to its place.
const COME_BACK_WITHIN: Duration = Duration::from_secs(5);
const RECONNECT_AFTER: Duration = Duration::from_millis(50);

/// The server's answer to a client in a line.
#[derive(Debug, PartialEq)]
enum Place {
    /// Granted by this very request.
    Granted(FencingToken),
    /// Granted by somebody's release before this request came.
    Handed(FencingToken),
    /// The present hold expires after `retry_in`. Whoever is granted the lock later gets
    /// a token above `counter`.
    Waiting {
        counter: u64,
        retry_in: Duration,
    },
    Full {
        waiting: usize,
        retry_in: Duration,
    },
}

/// Whether the owner asked before, and may be in the line already.
#[derive(Clone, Copy)]
enum Turn {
    First,
    Again,
}

/// One owner's wait.
struct Wait<'a> {
    ask: Ask<'a>,
    keys: [String; 6],
    turn: Turn,
    /// The time at which the last answered confirmation was sent. A client that is handed
    /// the lock sent no request for that; but it was live at this time, and the server
    /// counts from later. A confirmation that is still under way does not count: the
    /// hand-off may be older.
    confirmed_at: Instant,
    /// The highest counter that a confirmation showed. Only a hand-off with a higher token
    /// is younger than that confirmation, and may count from it.
    counter: u64,
}

impl QueueLine {
    pub(super) fn new(link: Arc<RedisLink>, settings: RedisSettings) -> QueueLine {
        let leave = Leave {
            script: settings.script(concat!(
                include_str!("scripts/token.lua"),
                include_str!("scripts/line.lua"),
                include_str!("scripts/leave.lua")
            )),
            floor: settings.fence_floor,
        };
        let cohorts = settings.cohort.map(|cohort| {
            let max = settings.queue_max;
            Cohorts::new(cohort, max, link.clone(), leave.clone())
        });
        QueueLine {
            link,
            floor: settings.fence_floor,
            queue_max: settings.queue_max,
            stand: settings.script(concat!(
                include_str!("scripts/token.lua"),
                include_str!("scripts/line.lua"),
                include_str!("scripts/stand.lua")
            )),
            leave,
            cohorts,
            #[cfg(all(debug_assertions, feature = "mutants"))]
            counts_from_hearing: settings.mutant == Some(Mutant::LateHandOff),
        }
    }

    /// Tries once, and passes nobody: if others wait, a free lock is theirs.
    pub(super) async fn try_acquire(&self, ask: Ask<'_>) -> Result<Attempt, LockProblem> {
        let open = self.link.open().await?;
        let asked = self.link.leftovers.asked(ask.owner, &open, Request::Try);
        let wait = Wait::new(ask);
        // Nobody can stay in a line that has no places.
        let attempt = match self.ask(&open, &wait, 0).await? {
            Place::Granted(token) | Place::Handed(token) => {
                Attempt::Granted(granted_until(token, wait.confirmed_at, ask.ttl)?)
            }
            Place::Waiting { retry_in, .. } | Place::Full { retry_in, .. } => {
                Attempt::Busy { retry_in }
            }
        };
        asked.settle();
        Ok(attempt)
    }

    /// Gives the lock to another waiter of this process. Returns false if the server has to
    /// release it.
    pub(super) fn pass_on(&self, key: &str, owner: &str) -> bool {
        let cohorts = self.cohorts.as_ref();
        cohorts.is_some_and(|cohorts| cohorts.pass_on(key, owner))
    }

    pub(super) fn renewed(&self, ask: Ask<'_>, outcome: RenewOutcome) {
        if let Some(cohorts) = &self.cohorts {
            cohorts.renewed(ask.key, ask.owner, outcome);
        }
    }

    async fn wait_in_cohort(
        &self,
        cohorts: &Cohorts,
        ask: Ask<'_>,
        last: &LastWord,
    ) -> Result<Grant, LockProblem> {
        match cohorts.turn(ask.key, last).await? {
            CohortTurn::Hold(grant) => Ok(grant),
            CohortTurn::Stand(standing) => {
                let grant = self.stand_until_granted(ask, last).await?;
                standing.granted(ask.owner, &grant);
                Ok(grant)
            }
        }
    }

    async fn stand_until_granted(
        &self,
        ask: Ask<'_>,
        last: &LastWord,
    ) -> Result<Grant, LockProblem> {
        let mut open = self.link.open().await?;
        let mut asked = self.link.leftovers.asked(ask.owner, &open, Request::Try);
        let mut wait = Wait::new(ask);
        loop {
            if let Some(grant) = self.stand_on(&open, &mut wait, last).await? {
                asked.settle();
                return Ok(grant);
            }
            open = self.come_back(ask.ttl, last).await?;
            asked.moves_to(&open);
        }
    }

    /// Stands in the line and confirms that, until the lock is granted. Returns `None` if
    /// the connection is over: then the place is still there.
    async fn stand_on(
        &self,
        open: &Arc<Open>,
        wait: &mut Wait<'_>,
        last: &LastWord,
    ) -> Result<Option<Grant>, LockProblem> {
        let Ask { owner, ttl, .. } = wait.ask;
        // Each confirmation expects its own word, from before it is sent. A word that
        // came earlier is out of date, or the answer says the same.
        while let Ok(mut hand_off) = open.wakes.expect(owner) {
            let sent_at = Instant::now();
            let retry_in = match self.ask(open, wait, self.queue_max).await? {
                Place::Granted(token) => return granted_until(token, sent_at, ttl).map(Some),
                Place::Handed(token) => {
                    return granted_until(token, wait.confirmed_at, ttl).map(Some);
                }
                Place::Waiting { counter, retry_in } => {
                    wait.confirmed_at = sent_at;
                    wait.counter = wait.counter.max(counter);
                    wait.turn = Turn::Again;
                    retry_in
                }
                Place::Full { waiting, .. } => {
                    let max = self.queue_max;
                    return Err(LockProblem::QueueFull { waiting, max });
                }
            };
            last.is_busy();
            let confirm_at = sent_at + confirm_after(ttl, retry_in);
            let Ok(word) = timeout_at(confirm_at, hand_off.word()).await else {
                continue;
            };
            let Ok(word) = word else {
                return Ok(None);
            };
            let token = read_token(word)?;
            hand_off.acted_on();
            #[cfg(all(debug_assertions, feature = "mutants"))]
            if self.counts_from_hearing {
                return granted_until(token, Instant::now(), ttl).map(Some);
            }
            // A word that is older than the confirmation says nothing about now: somebody
            // else may have been granted the lock since. The next answer says what is so.
            if token.0 > wait.counter {
                return granted_until(token, wait.confirmed_at, ttl).map(Some);
            }
        }
        Ok(None)
    }

    /// Opens another connection for a waiter that is in the line.
    async fn come_back(&self, ttl: Duration, last: &LastWord) -> Result<Arc<Open>, LockProblem> {
        let until = Instant::now() + ttl.min(COME_BACK_WITHIN);
        loop {
            match self.link.open().await {
                Err(problem @ LockProblem::Unreachable(_)) if Instant::now() < until => {
                    last.is_problem(problem);
                    sleep(RECONNECT_AFTER).await;
                }
                opened => return opened,
            }
        }
    }

    async fn ask(
        &self,
        open: &Arc<Open>,
        wait: &Wait<'_>,
        queue_max: usize,
    ) -> Result<Place, LockProblem> {
        let arguments = [
            wait.ask.owner,
            &ttl_ms(wait.ask.ttl),
            self.floor.word(),
            &open.hand_offs,
            &queue_max.to_string(),
            match wait.turn {
                Turn::First => "first",
                Turn::Again => "again",
            },
        ];
        let answer = self
            .link
            .run_on(open, &self.stand, &wait.keys, &arguments)
            .await?;
        read_place(&answer)
    }
}

impl<'a> Wait<'a> {
    fn new(ask: Ask<'a>) -> Wait<'a> {
        let [lock, fence, line, waiters] = line_keys(ask.key);
        let gone = gone_key(ask.key, ask.owner);
        Wait {
            ask,
            keys: [lock, fence, line, waiters, gone, swept_key(ask.key)],
            turn: Turn::First,
            confirmed_at: Instant::now(),
            counter: 0,
        }
    }
}

#[async_trait]
impl WaitLine for QueueLine {
    async fn wait(&self, ask: Ask<'_>, last: &LastWord) -> Result<Grant, LockError> {
        let granted = match &self.cohorts {
            None => self.stand_until_granted(ask, last).await,
            Some(cohorts) => self.wait_in_cohort(cohorts, ask, last).await,
        };
        granted.map_err(|problem| lock_error(&self.link, ask.key, problem))
    }
}

/// Returns the time until the next confirmation. That is half the TTL, so that a client
/// which is handed the lock can use it for at least as long, or the end of the present
/// hold, which is a millisecond after the server says 0.
fn confirm_after(ttl: Duration, retry_in: Duration) -> Duration {
    let millisecond = Duration::from_millis(1);
    let often = (ttl / 2).clamp(millisecond, CONFIRM_AFTER_MAX);
    often.min(retry_in.saturating_add(millisecond))
}

/// Reads what scripts/stand.lua answers and explains.
fn read_place(reply: &Reply) -> Result<Place, LockProblem> {
    if let (1 | 2, Ok([token @ 1..=i64::MAX])) = (reply.code, reply.numbers()) {
        let token = FencingToken(token.unsigned_abs());
        return Ok(match reply.code {
            1 => Place::Granted(token),
            _ => Place::Handed(token),
        });
    }
    let [number, left_ms] = reply.numbers()?;
    // It is negative if the hold has no end.
    let retry_in = u64::try_from(left_ms).map_or(Duration::MAX, Duration::from_millis);
    match (reply.code, u64::try_from(number), usize::try_from(number)) {
        (3, Ok(counter), _) => Ok(Place::Waiting { counter, retry_in }),
        (4, _, Ok(waiting)) => Ok(Place::Full { waiting, retry_in }),
        _ => Err(reply.is_strange()),
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
        let held = |code, token| read_place(&Reply::of(code, &[token]));
        assert_eq!(held(1, 7), Ok(Place::Granted(FencingToken(7))));
        assert_eq!(held(2, 7), Ok(Place::Handed(FencingToken(7))));
        let place = |code, number, left_ms| read_place(&Reply::of(code, &[number, left_ms]));
        let retry_in = Duration::from_millis(9);
        let counter = 6;
        assert_eq!(place(3, 6, 9), Ok(Place::Waiting { counter, retry_in }));
        let waiting = 3;
        assert_eq!(place(4, 3, 9), Ok(Place::Full { waiting, retry_in }));
        let retry_in = Duration::MAX;
        assert_eq!(place(3, 6, -1), Ok(Place::Waiting { counter, retry_in }));
        for (code, number) in [(1, 0), (2, -1), (3, 7)] {
            assert!(held(code, number).is_err(), "{code} {number}");
        }
        for (code, number) in [(1, 7), (3, -1), (4, -1), (5, 1)] {
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
