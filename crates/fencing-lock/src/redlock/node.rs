use crate::LockProblem;
use crate::redis::{Lua, RedisLink, Release, Reply};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// One of the nodes. It may be dead or silent without costing the others anything.
pub(super) struct Node {
    link: Arc<RedisLink>,
    unfinished: AtomicUsize,
    rest: Mutex<Option<Rest>>,
}

/// The pause of a node that could not be reached a moment ago.
struct Rest {
    until: Instant,
    problem: LockProblem,
}

/// Connecting costs more than asking. A connection to an unreachable node is tried this
/// often, and not once for every lock.
const REST: Duration = Duration::from_millis(50);

/// This keeps the requests to a node that does not answer from piling up in this process.
const UNFINISHED_MAX: usize = 4096;

impl Node {
    pub(super) fn new(link: RedisLink) -> Node {
        Node {
            link: Arc::new(link),
            unfinished: AtomicUsize::new(0),
            rest: Mutex::default(),
        }
    }

    pub(super) fn name(&self) -> &str {
        self.link.node()
    }

    pub(super) async fn run(
        &self,
        script: &Lua,
        keys: &[String],
        arguments: &[&str],
    ) -> Result<Reply, LockProblem> {
        self.bounded(self.link.run(script, keys, arguments)).await
    }

    /// Runs a script that can grant the lock to this owner.
    pub(super) async fn run_try(
        &self,
        owner: &str,
        script: &Lua,
        keys: &[String],
        arguments: &[&str],
    ) -> Result<Reply, LockProblem> {
        let answer = self.link.run_try(owner, script, keys, arguments);
        self.bounded(answer).await
    }

    /// Releases what the owner holds here, or may hold later.
    pub(super) async fn release(&self, release: Arc<Release>) -> Result<Reply, LockProblem> {
        if self.link.has_left(&release.owner) {
            // This may use the connection of the try, whatever became of later ones.
            return self.link.release(release).await;
        }
        // Nobody else frees the lock before its TTL is over.
        let rests_until = self.rest.lock().as_ref().map(|rest| rest.until);
        if let Some(until) = rests_until {
            sleep_until(until).await;
        }
        self.bounded(self.link.release(release)).await
    }

    async fn bounded<T>(
        &self,
        request: impl Future<Output = Result<T, LockProblem>>,
    ) -> Result<T, LockProblem> {
        if let Some(problem) = self.resting() {
            return Err(problem);
        }
        let _unfinished = Unfinished::begin(&self.unfinished)?;
        let answer = request.await;
        // The connection failed, or was made to something that is not a Redis.
        if let Err(problem @ (LockProblem::Unreachable(_) | LockProblem::BadAnswer(_))) = &answer {
            *self.rest.lock() = Some(Rest {
                until: Instant::now() + REST,
                problem: problem.clone(),
            });
        }
        answer
    }

    fn resting(&self) -> Option<LockProblem> {
        let mut rest = self.rest.lock();
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
