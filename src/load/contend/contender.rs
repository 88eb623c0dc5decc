use super::backlog::Backlog;
use super::keys::{Keys, contender_name};
use super::tally::{Held, Tally};
use super::*;
use crate::model::{ArrivalRow, BodyHash, Event, EventKind, Step};
use crate::resource::{ClientError, WriteAnswer, WriteRequest};
use crate::services::ReleaseStyle;
use fencing_lock::{Lease, LockProblem};
use tokio::time::Instant;

/// The state that all contenders of one step share.
pub(super) struct Field {
    pub(super) plan: ContendPlan,
    pub(super) contenders: u32,
    pub(super) resource: ResourceClient,
    pub(super) recorder: Arc<dyn Recorder>,
    pub(super) tally: Tally,
    /// `None` in the closed model, where contenders ask again as soon as they are done.
    pub(super) backlog: Option<Backlog>,
    pub(super) writes: Health,
    /// The step is over: nobody asks any more, and waits end.
    pub(super) over: CancellationToken,
    /// Holders stop working, too.
    pub(super) hurry: CancellationToken,
}

impl Field {
    /// Counts and records an arrival that no contender asked for.
    pub(super) fn never_asked(&self, keys: &Keys, due: Due, ended_ns: u64, end: ArrivalEnd) {
        self.tally.never_asked(due, ended_ns, end);
        let row = self.row(due, keys.name(due.key), ended_ns, end);
        self.recorder.arrival(&row);
    }

    /// Returns the row of an arrival that no contender asked for.
    fn row(&self, due: Due, key: String, ended_ns: u64, end: ArrivalEnd) -> ArrivalRow {
        ArrivalRow {
            step: self.contenders,
            intended_ns: due.intended_ns,
            asked_ns: None,
            granted_ns: None,
            ended_ns,
            contender: None,
            key,
            token: None,
            end,
        }
    }

    async fn work(&self, lasting: Duration) {
        if lasting.is_zero() {
            return;
        }
        tokio::select! {
            () = sleep(lasting) => {}
            () = self.hurry.cancelled() => {}
        }
    }

    pub(super) fn timeout_ns(&self) -> u64 {
        self.plan.timeout.as_nanos() as u64
    }
}

/// A contender: wants locks, one after the other, and reports events as a worker does.
pub(super) struct Contender {
    index: u32,
    name: String,
    locks: LockClient,
    keys: Keys,
    /// Draws the duration of the work.
    random: fastrand::Rng,
    field: Arc<Field>,
}

/// The pause after a failure, as of a worker: without it, servers that refuse would be asked as
/// fast as they refuse.
const AFTER_A_FAILURE: Duration = Duration::from_millis(100);
/// With less time than this left, a contender does not ask: it might give up before the answer
/// comes, which would look like a server that does not answer.
const TOO_LATE_TO_ASK_NS: u64 = 50_000_000;

impl Contender {
    pub(super) fn new(field: Arc<Field>, index: u32, locks: LockClient, keys: Keys) -> Contender {
        Contender {
            index,
            name: contender_name(field.contenders, index),
            locks,
            random: fastrand::Rng::with_seed(keys.seed_of_another()),
            keys,
            field,
        }
    }

    pub(super) fn is_ready(&self) {
        self.tell(raw_monotonic_ns(), EventKind::ready(Vec::new()));
    }

    /// Plays arrivals until the step is over.
    pub(super) async fn contend(mut self) {
        let field = self.field.clone();
        let mut rounds = 0;
        while let Some(due) = self.next().await {
            rounds += 1;
            let failed = self.play(rounds, due).await.is_err();
            if failed {
                tokio::select! {
                    () = sleep(AFTER_A_FAILURE) => {}
                    () = field.over.cancelled() => {}
                }
            }
            if let Some(backlog) = &field.backlog {
                backlog.free_again();
            }
        }
        self.tell(raw_monotonic_ns(), EventKind::Done { rounds });
    }

    async fn next(&mut self) -> Option<Due> {
        let field = &self.field;
        if let Some(backlog) = &field.backlog {
            return backlog.take().await;
        }
        if field.over.is_cancelled() {
            return None;
        }
        field.tally.arrives();
        Some(Due {
            intended_ns: raw_monotonic_ns(),
            key: self.keys.choose(),
        })
    }

    /// Plays one arrival to its end.
    async fn play(&mut self, round: u32, due: Due) -> Result<(), Failed> {
        let field = Arc::clone(&self.field);
        let asked_ns = raw_monotonic_ns();
        let gives_up_ns = due.intended_ns.saturating_add(field.timeout_ns());
        let left_ns = gives_up_ns.saturating_sub(asked_ns);
        if left_ns < TOO_LATE_TO_ASK_NS.min(field.timeout_ns() / 2) {
            let end = ArrivalEnd::TimedOut;
            field.never_asked(&self.keys, due, gives_up_ns, end);
            return Ok(());
        }
        let key = self.keys.name(due.key);
        let acquiring = EventKind::Acquiring {
            round,
            key: key.clone(),
        };
        self.tell(asked_ns, acquiring);
        field.tally.asks(due);
        let deadline = Instant::now() + Duration::from_nanos(left_ns);
        let acquired = tokio::select! {
            biased;
            acquired = self.locks.acquire(&key, deadline) => Some(acquired),
            // Dropping the future undoes the wait in progress.
            () = field.over.cancelled() => None,
        };
        let at_ns = raw_monotonic_ns();
        let (end, result) = match acquired {
            Some(Ok(lease)) => return self.hold(round, due, asked_ns, lease, at_ns).await,
            Some(Err(error)) => self.not_acquired(round, at_ns, error),
            None => (ArrivalEnd::StillWaiting, Ok(())),
        };
        field.tally.not_granted(due, self.index, at_ns, end);
        field.recorder.arrival(&ArrivalRow {
            asked_ns: Some(asked_ns),
            contender: Some(self.name.clone()),
            ..field.row(due, key, at_ns, end)
        });
        result
    }

    /// Returns how the arrival ended without a grant. A wait that timed out because somebody
    /// else held the lock is recorded only among the arrivals. The event `failed` would mean
    /// that nobody knows whether the contender held the lock, and it certainly did not.
    fn not_acquired(
        &self,
        round: u32,
        at_ns: u64,
        error: LockError,
    ) -> (ArrivalEnd, Result<(), Failed>) {
        if let LockProblem::Timeout { last: None, .. } = error.problem {
            return (ArrivalEnd::TimedOut, Ok(()));
        }
        let in_time = !matches!(error.problem, LockProblem::Timeout { .. });
        let failed = EventKind::Failed {
            round,
            during: Step::Acquire,
            error: error.to_string(),
        };
        self.tell(at_ns, failed);
        let end = if in_time {
            ArrivalEnd::Failed
        } else {
            ArrivalEnd::TimedOut
        };
        (end, Err(Failed))
    }

    /// Works, writes and releases. A lost lease does not prevent the write: stopping it is the
    /// purpose of the fence.
    async fn hold(
        &mut self,
        round: u32,
        due: Due,
        asked_ns: u64,
        lease: Lease,
        granted_ns: u64,
    ) -> Result<(), Failed> {
        let field = Arc::clone(&self.field);
        let (key, token) = (lease.key().to_owned(), lease.fence());
        field.tally.granted(due, self.index, asked_ns, granted_ns);
        let acquired = EventKind::Acquired {
            round,
            key: key.clone(),
            token: Some(token),
            owner: lease.owner().to_owned(),
            valid_until_ns: Some(services::valid_until_ns(&lease)),
        };
        self.tell(granted_ns, acquired);
        let work = field.plan.work.draw(&mut self.random);
        field.work(work).await;
        let writing_ns = raw_monotonic_ns();
        if let Some(reason) = lease.lost_reason() {
            let lost = EventKind::Lost {
                round,
                key: key.clone(),
                token: Some(token),
                reason: reason.to_string(),
            };
            self.tell(writing_ns, lost);
        }
        let written = self.write(round, &lease, writing_ns).await;
        let releasing_ns = raw_monotonic_ns();
        field.tally.lets_go(due.key, self.index, releasing_ns);
        let releasing = EventKind::Releasing {
            round,
            key: key.clone(),
            token: Some(token),
        };
        self.tell(releasing_ns, releasing);
        let outcome = match field.plan.lock.release {
            ReleaseStyle::CompareAndDelete => lease.release().await,
            ReleaseStyle::UnsafeGetThenDel => {
                let between = Box::pin(std::future::ready(()));
                lease.release_unsafe_get_then_del(between).await
            }
        };
        let released_ns = raw_monotonic_ns();
        field.tally.held(&Held {
            granted_ns,
            writing_ns,
            releasing_ns,
            released_ns,
        });
        field.recorder.arrival(&ArrivalRow {
            asked_ns: Some(asked_ns),
            granted_ns: Some(granted_ns),
            contender: Some(self.name.clone()),
            token: Some(token.0),
            ..field.row(due, key.clone(), released_ns, ArrivalEnd::Granted)
        });
        let released = EventKind::Released {
            round,
            key,
            token: Some(token),
            outcome: services::outcome(outcome),
        };
        self.tell(released_ns, released);
        written
    }

    async fn write(&self, round: u32, lease: &Lease, at_ns: u64) -> Result<(), Failed> {
        let (key, token) = (lease.key().to_owned(), lease.fence());
        let owner = lease.owner().to_owned();
        let body = format!(r#"{{"by":"{}","token":{token}}}"#, self.name);
        let writing = EventKind::Writing {
            round,
            key: key.clone(),
            token: Some(token),
            owner: owner.clone(),
            body: Some(BodyHash::of(body.as_bytes())),
        };
        self.tell(at_ns, writing);
        let attempt = WriteRequest {
            key: key.clone(),
            token: Some(token),
            token_seq: 0,
            owner: Some(owner.clone()),
            based_on: None,
            body: body.into(),
        };
        let answer = self.field.resource.put(&attempt).await;
        let told = match &answer {
            Ok(WriteAnswer::Accepted { position }) => EventKind::WriteAccepted {
                round,
                key,
                token: Some(token),
                owner,
                position: *position,
            },
            Ok(WriteAnswer::Rejected { seen, got }) => EventKind::WriteRejected {
                round,
                key,
                owner,
                seen: *seen,
                got: *got,
            },
            Err(error) => EventKind::Failed {
                round,
                during: Step::Write,
                error: error.to_string(),
            },
        };
        self.tell(raw_monotonic_ns(), told);
        let Err(error) = answer else {
            self.field.writes.went_right();
            return Ok(());
        };
        self.field.writes.went_wrong(words(&error));
        Err(Failed)
    }

    fn tell(&self, at_ns: u64, kind: EventKind) {
        self.field.recorder.event(&Event {
            at_ns,
            worker: self.name.clone(),
            kind,
        });
    }
}

/// A step got no usable answer, and this was reported.
struct Failed;

/// Describes an error without the key, which would make each error a different one.
fn words(error: &ClientError) -> String {
    match error {
        ClientError::NoAnswer { reason, .. } => format!("the resource: no answer: {reason}"),
        ClientError::BadRequest { message, .. } | ClientError::Refused { message, .. } => {
            format!("the resource refused: {message}")
        }
        ClientError::Address { .. } => error.to_string(),
    }
}
