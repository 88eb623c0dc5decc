use super::link::RedisLink;
use super::queue::Leave;
use crate::{FencingToken, Grant, LastWord, LockProblem, RenewOutcome, Term};
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

/// The waiters of one process pass a lock on among themselves, under one grant of the
/// server. An option of [`WaitPolicy::Queue`](crate::WaitPolicy::Queue).
///
/// One waiter of the process stands in the line for all of them. Once it has the lock, a
/// release gives it to the next waiter of the same process, without the server: at most
/// `hand_offs_max` times, not later than `within` after the grant, and only while half of
/// the TTL is left. So each grant before a waiter elsewhere costs that one at most
/// `hand_offs_max` hand-offs more.
///
/// All holders of one grant have its token and its owner, and each has a higher
/// [`seq`](crate::Lease::seq): a resource that compares (token, seq) orders their writes.
///
/// If nobody polls the future of the waiter that stands in the line, the others of its
/// process wait with it.
#[derive(Clone, Copy, Debug)]
pub struct CohortSettings {
    pub hand_offs_max: u32,
    pub within: Duration,
}

pub(super) struct Cohorts {
    settings: CohortSettings,
    queue_max: usize,
    link: Arc<RedisLink>,
    leave: Leave,
    keys: Mutex<BTreeMap<String, Cohort>>,
}

/// Those of this process who want one key. There is one exactly while one of them holds
/// the lock or stands in the line.
#[derive(Default)]
struct Cohort {
    /// Absent while that one stands in the line.
    baton: Option<Baton>,
    waiting: VecDeque<oneshot::Sender<Word>>,
}

/// A grant of the server, as it is passed on.
#[derive(Clone)]
pub(super) struct Baton {
    owner: String,
    token: FencingToken,
    ttl: Duration,
    granted_at: Instant,
    deadline: Instant,
    hand_offs: u32,
}

/// What comes to a waiter.
pub(super) enum CohortTurn<'a> {
    /// It has to stand in the line for all.
    Stand(Standing<'a>),
    Hold(Grant),
}

/// The same, on its way.
enum Word {
    Stand,
    Hold(Baton),
}

/// The duty to stand in the line. If it is dropped without a grant, the next one has it.
pub(super) struct Standing<'a> {
    cohorts: &'a Cohorts,
    key: &'a str,
    is_granted: bool,
}

/// A waiter. If it is dropped with its word unheard, the next one gets the word.
struct Waiter<'a> {
    cohorts: &'a Cohorts,
    key: &'a str,
    word: oneshot::Receiver<Word>,
}

/// A waiter looks this often whether the holder's time is over.
const LOOK_AFTER: Duration = Duration::from_secs(5);

impl Cohorts {
    pub(super) fn new(
        settings: CohortSettings,
        queue_max: usize,
        link: Arc<RedisLink>,
        leave: Leave,
    ) -> Cohorts {
        Cohorts {
            settings,
            queue_max,
            link,
            leave,
            keys: Mutex::default(),
        }
    }

    /// Waits for the turn of one more waiter.
    pub(super) async fn turn<'a>(
        &'a self,
        key: &'a str,
        last: &LastWord,
    ) -> Result<CohortTurn<'a>, LockProblem> {
        let stand = || {
            CohortTurn::Stand(Standing {
                cohorts: self,
                key,
                is_granted: false,
            })
        };
        let Some(word) = self.join(key)? else {
            return Ok(stand());
        };
        let mut waiter = Waiter {
            cohorts: self,
            key,
            word,
        };
        loop {
            if self.is_held(key) {
                last.is_busy();
            }
            // A holder that never gives the lock back blocks nobody for longer than at
            // the server.
            match timeout_at(self.look_at(key), &mut waiter.word).await {
                Ok(Ok(Word::Hold(baton))) => {
                    let owner = baton.owner.clone();
                    let grant = baton.grant();
                    if grant.is_err() {
                        self.give_back(key, &owner);
                    }
                    return grant.map(CohortTurn::Hold);
                }
                Ok(Ok(Word::Stand) | Err(_)) => return Ok(stand()),
                Err(_) => self.end_if_over(key),
            }
        }
    }

    /// Returns `None` for the first of the process.
    fn join(&self, key: &str) -> Result<Option<oneshot::Receiver<Word>>, LockProblem> {
        self.end_if_over(key);
        let mut keys = self.keys.lock();
        let Some(cohort) = keys.get_mut(key) else {
            keys.insert(key.to_owned(), Cohort::default());
            return Ok(None);
        };
        let max = self.queue_max;
        if cohort.waiting.len() >= max {
            cohort.waiting.retain(|waiter| !waiter.is_closed());
            let waiting = cohort.waiting.len();
            if waiting >= max {
                return Err(LockProblem::QueueFull { waiting, max });
            }
        }
        let (sender, word) = oneshot::channel();
        cohort.waiting.push_back(sender);
        Ok(Some(word))
    }

    /// Gives the lock of this owner to the next waiter of the process. Returns false if the
    /// server has to release it.
    pub(super) fn pass_on(&self, key: &str, owner: &str) -> bool {
        let mut keys = self.keys.lock();
        let Some(cohort) = keys.get_mut(key) else {
            return false;
        };
        let Some(mut baton) = cohort.baton.take_if(|baton| baton.owner == owner) else {
            return false;
        };
        if self.may_pass_on(&baton) {
            baton.hand_offs += 1;
            while let Some(next) = cohort.waiting.pop_front() {
                if next.send(Word::Hold(baton.clone())).is_ok() {
                    cohort.baton = Some(baton);
                    return true;
                }
            }
        }
        let_next_stand(&mut keys, key);
        false
    }

    /// Gives the lock of this owner to somebody else, whoever that is.
    fn give_back(&self, key: &str, owner: &str) {
        if !self.pass_on(key, owner) {
            let release = Arc::new(self.leave.release(key, owner));
            let link = self.link.clone();
            self.link.env().in_background(async move {
                let _unknown = link.release(release).await;
            });
        }
    }

    fn may_pass_on(&self, baton: &Baton) -> bool {
        let left = baton.deadline.saturating_duration_since(Instant::now());
        baton.hand_offs < self.settings.hand_offs_max
            && baton.granted_at.elapsed() < self.settings.within
            && left >= baton.ttl / 2
    }

    /// Learns from a renewal until when the grant lasts. One that is lost is not passed on,
    /// whatever an older renewal answers later.
    pub(super) fn renewed(&self, key: &str, owner: &str, outcome: RenewOutcome) {
        let mut keys = self.keys.lock();
        let baton = keys.get_mut(key).and_then(|cohort| cohort.baton.as_mut());
        let Some(baton) = baton.filter(|baton| baton.owner == owner) else {
            return;
        };
        match outcome {
            RenewOutcome::Renewed { until } => baton.deadline = baton.deadline.max(until),
            RenewOutcome::Expired | RenewOutcome::Superseded => let_next_stand(&mut keys, key),
        }
    }

    /// Returns whether one of this process holds the lock.
    fn is_held(&self, key: &str) -> bool {
        let keys = self.keys.lock();
        keys.get(key).is_some_and(|cohort| cohort.baton.is_some())
    }

    fn look_at(&self, key: &str) -> Instant {
        let keys = self.keys.lock();
        let baton = keys.get(key).and_then(|cohort| cohort.baton.as_ref());
        let soon = Instant::now() + LOOK_AFTER;
        baton.map_or(soon, |baton| baton.deadline.min(soon))
    }

    fn end_if_over(&self, key: &str) {
        let mut keys = self.keys.lock();
        let baton = keys.get(key).and_then(|cohort| cohort.baton.as_ref());
        if baton.is_some_and(|baton| baton.deadline <= Instant::now()) {
            let_next_stand(&mut keys, key);
        }
    }
}

/// Sends the next waiter of the process into the line, if there is one.
fn let_next_stand(keys: &mut BTreeMap<String, Cohort>, key: &str) {
    let Some(cohort) = keys.get_mut(key) else {
        return;
    };
    cohort.baton = None;
    while let Some(next) = cohort.waiting.pop_front() {
        if next.send(Word::Stand).is_ok() {
            return;
        }
    }
    keys.remove(key);
}

impl Baton {
    fn grant(self) -> Result<Grant, LockProblem> {
        let asked_at = self.deadline - self.ttl;
        let grant = Grant::new(self.token, asked_at, self.ttl, Term::Until(self.deadline))?;
        Ok(grant.passed_on(self.owner, self.hand_offs))
    }
}

impl Standing<'_> {
    pub(super) fn granted(mut self, owner: &str, grant: &Grant) {
        self.is_granted = true;
        if let Some(cohort) = self.cohorts.keys.lock().get_mut(self.key) {
            cohort.baton = Some(Baton {
                owner: owner.to_owned(),
                token: grant.token(),
                ttl: grant.ttl(),
                granted_at: grant.heard_at(),
                deadline: grant.asked_at() + grant.ttl(),
                hand_offs: 0,
            });
        }
    }
}

impl Drop for Standing<'_> {
    fn drop(&mut self) {
        if !self.is_granted {
            let_next_stand(&mut self.cohorts.keys.lock(), self.key);
        }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.word.close();
        match self.word.try_recv() {
            Ok(Word::Stand) => let_next_stand(&mut self.cohorts.keys.lock(), self.key),
            Ok(Word::Hold(baton)) => self.cohorts.give_back(self.key, &baton.owner),
            Err(_) => {}
        }
    }
}
