use super::backend::IfHeld;
use super::in_flight::InFlight;
use super::wait::JitterWait;
use super::{Ask, Attempt, LastWord, Lease, LockBackend, LockError, LockMetrics, LockProblem};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout_at};

pub const MAX_KEY_BYTES: usize = 256;
pub const MAX_TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// Acquires locks from one backend: it waits, gives up at a deadline, and
/// leaves nothing behind when it is cancelled.
#[derive(Clone)]
pub struct LockClient {
    shared: Arc<ClientState>,
}

#[derive(Clone, Copy, Debug)]
pub struct LockSettings {
    pub ttl: Duration,
    /// Seeds the random waits between two tries.
    pub seed: u64,
}

struct ClientState {
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
            shared: Arc::new(ClientState {
                backend,
                // Servers count whole milliseconds, and nobody may believe in more.
                ttl: Duration::from_millis(ttl.as_millis() as u64),
                wait: JitterWait::new(seed),
                metrics: Arc::new(metrics),
            }),
        })
    }

    /// Waits until it holds the lock or the deadline has passed.
    ///
    /// A server that is unreachable or does not answer is tried again like one that says
    /// "busy": it may come back before the deadline. Dropping the future is safe: a
    /// request that is under way is undone in the background, so no key and no place in a
    /// line stays behind on a server that can be reached. If it cannot be reached, the
    /// TTL frees the lock.
    pub async fn acquire(&self, key: &str, deadline: Instant) -> Result<Lease, LockError> {
        self.check_key(key)?;
        let ClientState {
            backend,
            wait,
            metrics,
            ..
        } = &*self.shared;
        let _waiting = metrics.waiting();
        let started_at = Instant::now();
        let last = LastWord::default();
        loop {
            let attempt = self.attempt(key, started_at, IfHeld::StandInLine, &last);
            let retry_in = match timeout_at(deadline, attempt).await {
                Ok(Ok(Outcome::Held(lease))) => return Ok(lease),
                Ok(Ok(Outcome::Busy { retry_in })) => Some(retry_in),
                Ok(Err(error)) if error.problem.is_final() => return Err(error),
                Ok(Err(_)) | Err(_) => None,
            };
            let next_try = Instant::now() + wait.next(retry_in);
            if next_try >= deadline {
                sleep_until(deadline).await;
                metrics.acquire_timeouts.inc();
                let waited = started_at.elapsed();
                let last = last.into_problem(waited).map(Box::new);
                let problem = LockProblem::Timeout { waited, last };
                return Err(backend.error(key, problem));
            }
            sleep_until(next_try).await;
        }
    }

    /// Tries once and returns `None` if somebody else holds the lock.
    pub async fn try_acquire(&self, key: &str) -> Result<Option<Lease>, LockError> {
        self.check_key(key)?;
        let last = LastWord::default();
        let attempt = self.attempt(key, Instant::now(), IfHeld::ComeBack, &last);
        match attempt.await? {
            Outcome::Held(lease) => Ok(Some(lease)),
            Outcome::Busy { .. } => Ok(None),
        }
    }

    /// Makes one of several tries, the first of which was made at `started_at`.
    async fn attempt(
        &self,
        key: &str,
        started_at: Instant,
        if_held: IfHeld,
        last: &LastWord,
    ) -> Result<Outcome, LockError> {
        let ClientState {
            backend,
            ttl,
            metrics,
            ..
        } = &*self.shared;
        let in_flight = InFlight::new(backend.clone(), key);
        let attempt = metrics.attempt();
        let ask = Ask {
            key,
            owner: in_flight.owner(),
            ttl: *ttl,
        };
        let answer = match backend.line().filter(|_| if_held == IfHeld::StandInLine) {
            Some(line) => line.wait(ask, last).await.map(Attempt::Granted),
            None => backend.try_acquire(ask).await,
        };
        match answer {
            Ok(Attempt::Granted(grant)) => {
                metrics.granted(started_at.elapsed());
                let (key, owner) = in_flight.settle();
                let lease = Lease::new(backend.clone(), metrics.clone(), key, owner, grant);
                Ok(Outcome::Held(lease))
            }
            Ok(Attempt::Busy { retry_in }) => {
                last.is_busy();
                in_flight.settle();
                Ok(Outcome::Busy { retry_in })
            }
            Err(error) => {
                last.is_problem(error.problem.clone());
                if !error.problem.may_have_happened() {
                    attempt.was_not_sent();
                }
                // Otherwise the leftover of this try would keep us waiting for ourselves.
                in_flight.undo().await;
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
