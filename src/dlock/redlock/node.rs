use crate::dlock::LockProblem;
use crate::dlock::redis::{Lua, RedisLink};
use redis::FromRedisValue;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// One of the nodes, which may be dead or mute without costing the others
/// anything.
pub(super) struct Node {
    link: RedisLink,
    unfinished: AtomicUsize,
    rest: Mutex<Option<Rest>>,
}

/// A node that could not be reached a moment ago.
struct Rest {
    until: Instant,
    problem: LockProblem,
}

/// Connecting costs more than asking. A node that is not there is looked for
/// this often, and not once for every lock.
const REST: Duration = Duration::from_millis(50);

/// A node that does not answer must not pile requests up in this process.
const UNFINISHED_MAX: usize = 4096;

impl Node {
    pub(super) fn new(link: RedisLink) -> Node {
        Node {
            link,
            unfinished: AtomicUsize::new(0),
            rest: Mutex::default(),
        }
    }

    pub(super) fn name(&self) -> &str {
        self.link.node()
    }

    pub(super) async fn run<T: FromRedisValue>(
        &self,
        script: &Lua,
        keys: &[String],
        arguments: &[&str],
    ) -> Result<T, LockProblem> {
        if let Some(problem) = self.resting() {
            return Err(problem);
        }
        let _unfinished = Unfinished::begin(&self.unfinished)?;
        let answer = self.link.run(script, keys, arguments).await;
        // What did not come about as a connection, or was one to something
        // that is no Redis.
        if let Err(problem @ (LockProblem::Unreachable(_) | LockProblem::BadAnswer(_))) = &answer {
            *self.rest.lock().unwrap_or_else(PoisonError::into_inner) = Some(Rest {
                until: Instant::now() + REST,
                problem: problem.clone(),
            });
        }
        answer
    }

    fn resting(&self) -> Option<LockProblem> {
        let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        let current = rest.take_if(|rest| Instant::now() >= rest.until);
        drop(current);
        rest.as_ref().map(|rest| rest.problem.clone())
    }
}

/// Counts a request until its future is done or dropped.
struct Unfinished<'a>(&'a AtomicUsize);

impl Unfinished<'_> {
    fn begin(count: &AtomicUsize) -> Result<Unfinished<'_>, LockProblem> {
        let before = count.fetch_add(1, Ordering::Relaxed);
        let counted = Unfinished(count);
        if before >= UNFINISHED_MAX {
            let reason = format!("not asked, because it owes {before} answers");
            return Err(LockProblem::Unreachable(reason));
        }
        Ok(counted)
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
