use super::in_flight::InFlight;
use super::wait::JitterWait;
use super::{Ask, Attempt, Lease, LockBackend, LockError, LockMetrics, LockProblem};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout_at};

pub const MAX_KEY_BYTES: usize = 256;
pub const MAX_TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// Longer than a backend takes to find out that a server does not answer.
const A_MOMENT: Duration = Duration::from_secs(2);

/// Acquires locks from one backend: it waits, gives up at a deadline, and
/// leaves nothing behind when it is cancelled.
#[derive(Clone)]
pub struct LockClient {
    shared: Arc<Shared>,
}

#[derive(Clone, Copy, Debug)]
pub struct LockSettings {
    pub ttl: Duration,
    /// Of the random waits between two tries.
    pub seed: u64,
}

struct Shared {
    backend: Arc<dyn LockBackend>,
    ttl: Duration,
    wait: JitterWait,
    metrics: Arc<LockMetrics>,
}

impl LockClient {
    pub fn new(
        backend: Arc<dyn LockBackend>,
        settings: LockSettings,
        metrics: LockMetrics,
    ) -> Result<LockClient, LockError> {
        let LockSettings { ttl, seed } = settings;
        check_ttl(ttl).map_err(|problem| backend.error("", problem))?;
        metrics.requests.include(backend.requests());
        Ok(LockClient {
            shared: Arc::new(Shared {
                backend,
                ttl,
                wait: JitterWait::new(seed),
                metrics: Arc::new(metrics),
            }),
        })
    }

    /// Waits until it holds the lock or the deadline has come.
    ///
    /// A server that is not there or does not answer is tried again like one
    /// that says "busy": it may come back before the deadline. Dropping the
    /// future is safe: what is under way is undone in the background, so no
    /// key and no place in a line stays behind on a server that can be
    /// reached. Where it cannot, the TTL frees the lock.
    pub async fn acquire(&self, key: &str, deadline: Instant) -> Result<Lease, LockError> {
        self.check_key(key)?;
        let Shared {
            backend,
            wait,
            metrics,
            ..
        } = &*self.shared;
        let _waiting = metrics.waiting();
        let started_at = Instant::now();
        // When the last try came to an end, and what was wrong with it; nothing
        // is wrong with a lock that somebody else holds.
        let mut last_try: Option<(Instant, Option<LockProblem>)> = None;
        loop {
            let attempt = self.attempt(key, started_at, Patience::InLine);
            let mut retry_in = None;
            match timeout_at(deadline, attempt).await {
                Ok(Ok(Outcome::Held(lease))) => return Ok(lease),
                Ok(Ok(Outcome::Busy { retry_in: end })) => {
                    retry_in = Some(end);
                    last_try = Some((Instant::now(), None));
                }
                Ok(Err(error)) if error.problem.is_final() => return Err(error),
                Ok(Err(error)) => last_try = Some((Instant::now(), Some(error.problem))),
                Err(_) => {}
            }
            let next_try = Instant::now() + wait.next(retry_in);
            if next_try >= deadline {
                sleep_until(deadline).await;
                metrics.acquire_timeouts.inc();
                let last = match last_try.filter(|(at, _)| at.elapsed() < A_MOMENT) {
                    Some((_, problem)) => problem,
                    // No answer for that long means that it was not our turn.
                    None if backend.line().is_some() => None,
                    None => Some(LockProblem::NoAnswer("the deadline came first".to_owned())),
                };
                let problem = LockProblem::Timeout {
                    waited: started_at.elapsed(),
                    last: last.map(Box::new),
                };
                return Err(backend.error(key, problem));
            }
            sleep_until(next_try).await;
        }
    }

    /// One try: `None` when somebody else holds the lock.
    pub async fn try_acquire(&self, key: &str) -> Result<Option<Lease>, LockError> {
        self.check_key(key)?;
        match self.attempt(key, Instant::now(), Patience::None).await? {
            Outcome::Held(lease) => Ok(Some(lease)),
            Outcome::Busy { .. } => Ok(None),
        }
    }

    /// `started_at`: when the first of these tries was made.
    async fn attempt(
        &self,
        key: &str,
        started_at: Instant,
        patience: Patience,
    ) -> Result<Outcome, LockError> {
        let Shared {
            backend,
            ttl,
            metrics,
            ..
        } = &*self.shared;
        let in_flight = InFlight::new(backend.clone(), key);
        metrics.acquire_attempts.inc();
        let ask = Ask {
            key,
            owner: in_flight.owner(),
            ttl: *ttl,
        };
        let answer = match backend.line().filter(|_| patience == Patience::InLine) {
            Some(line) => line.wait(ask).await.map(Attempt::Granted),
            None => backend.try_acquire(ask).await,
        };
        match answer {
            Ok(Attempt::Granted(grant)) => {
                metrics.granted(grant.token, started_at.elapsed());
                let (key, owner) = in_flight.settle();
                let lease = Lease::new(backend.clone(), metrics.clone(), key, owner, grant);
                if lease.is_lost() {
                    // The answer was under way for longer than the grant lives:
                    // nobody may begin to work on that.
                    lease.release().await;
                    let retry_in = Duration::ZERO;
                    return Ok(Outcome::Busy { retry_in });
                }
                Ok(Outcome::Held(lease))
            }
            Ok(Attempt::Busy { retry_in }) => {
                in_flight.settle();
                Ok(Outcome::Busy { retry_in })
            }
            Err(error) => {
                if error.problem.may_have_happened() {
                    // Otherwise our own ghost would be the one we wait for.
                    in_flight.undo().await;
                } else {
                    in_flight.settle();
                }
                Err(error)
            }
        }
    }

    pub(super) fn error(&self, key: &str, problem: LockProblem) -> LockError {
        self.shared.backend.error(key, problem)
    }

    fn check_key(&self, key: &str) -> Result<(), LockError> {
        check_key(key).map_err(|problem| self.error(key, problem))
    }
}

enum Outcome {
    Held(Lease),
    Busy { retry_in: Duration },
}

/// What to do about a lock that is busy.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Patience {
    /// Come back with an answer at once.
    None,
    /// Stand in the backend's line, if it has one.
    InLine,
}

fn check_key(key: &str) -> Result<(), LockProblem> {
    if key.is_empty() {
        return Err(LockProblem::KeyEmpty);
    }
    if key.len() > MAX_KEY_BYTES {
        let length_bytes = key.len();
        return Err(LockProblem::KeyTooLong { length_bytes });
    }
    if key.chars().any(char::is_control) {
        return Err(LockProblem::KeyControlCharacter);
    }
    Ok(())
}

fn check_ttl(ttl: Duration) -> Result<(), LockProblem> {
    if ttl < Duration::from_millis(1) {
        return Err(LockProblem::TtlTooShort);
    }
    if ttl > MAX_TTL {
        return Err(LockProblem::TtlTooLong { ttl });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_cannot_be_meant_are_refused() {
        assert_eq!(check_key(""), Err(LockProblem::KeyEmpty));
        assert_eq!(
            check_key(&"é".repeat(129)),
            Err(LockProblem::KeyTooLong { length_bytes: 258 })
        );
        assert_eq!(
            check_key("account\n42"),
            Err(LockProblem::KeyControlCharacter)
        );
        assert_eq!(check_key(&"k".repeat(MAX_KEY_BYTES)), Ok(()));
        assert_eq!(check_key("account 42 / ü"), Ok(()));
    }

    #[test]
    fn a_ttl_is_at_least_a_millisecond_and_at_most_a_day() {
        assert_eq!(check_ttl(Duration::ZERO), Err(LockProblem::TtlTooShort));
        assert_eq!(
            check_ttl(Duration::from_micros(999)),
            Err(LockProblem::TtlTooShort)
        );
        assert_eq!(check_ttl(Duration::from_millis(1)), Ok(()));
        assert_eq!(check_ttl(MAX_TTL), Ok(()));
        let ttl = MAX_TTL + Duration::from_millis(1);
        assert_eq!(check_ttl(ttl), Err(LockProblem::TtlTooLong { ttl }));
    }
}
