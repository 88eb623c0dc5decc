use super::backlog::{Backlog, Due};
use super::health::Health;
use super::keys::{Keys, contender_name};
use super::tally::{Held, Tally};
use crate::clock::raw_monotonic_ns;
use crate::dlock::{Lease, LockClient, LockError, LockProblem};
use crate::load::Recorder;
use crate::model::{
    ArrivalEnd, ArrivalRow, BodyHash, ContendPlan, Event, EventKind, ReleaseStyle, Step,
};
use crate::resource::{ClientError, ResourceClient, WriteAnswer, WriteAttempt};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// What all contenders of one step share.
pub(super) struct Field {
    pub(super) plan: ContendPlan,
    pub(super) contenders: u32,
    pub(super) resource: ResourceClient,
    pub(super) recorder: Arc<dyn Recorder>,
    pub(super) tally: Tally,
    /// `None` where everybody asks again as soon as they are done.
    pub(super) backlog: Option<Backlog>,
    /// How the resource is.
    pub(super) writes: Health,
    /// The step is over: nobody asks, and whoever waits stops waiting.
    pub(super) over: CancellationToken,
    /// Whoever works stops working, too.
    pub(super) hurry: CancellationToken,
}

impl Field {
    /// How an arrival came out that no contender asked for.
    pub(super) fn never_asked(&self, keys: &Keys, due: Due, ended_ns: u64, end: ArrivalEnd) {
        self.tally.never_asked(due, ended_ns, end);
        self.recorder.arrival(&ArrivalRow {
            step: self.contenders,
            intended_ns: due.intended_ns,
            asked_ns: None,
            granted_ns: None,
            ended_ns,
            contender: None,
            key: keys.name(due.key),
            token: None,
            end,
        });
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

/// One who wants locks, one after the other, and tells of it as a worker does.
pub(super) struct Contender {
    index: u32,
    name: String,
    locks: LockClient,
    keys: Keys,
    /// Draws how long the work lasts.
    random: fastrand::Rng,
    field: Arc<Field>,
}

/// As a worker waits: servers that refuse would be asked as fast as they refuse.
const AFTER_A_FAILURE: Duration = Duration::from_millis(100);
/// Whoever has less time than that left may give up before the answer is there,
/// which would look like a server that does not answer.
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
        self.tell(raw_monotonic_ns(), EventKind::Ready { lacks: Vec::new() });
    }

    /// Until the step is over.
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

    /// One arrival, to whatever end.
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
        self.tell(
            asked_ns,
            EventKind::Acquiring {
                round,
                key: key.clone(),
            },
        );
        field.tally.asks(due);
        let deadline = Instant::now() + Duration::from_nanos(left_ns);
        let acquired = tokio::select! {
            biased;
            acquired = self.locks.acquire(&key, deadline) => Some(acquired),
            // Dropping it undoes what is under way.
            () = field.over.cancelled() => None,
        };
        let at_ns = raw_monotonic_ns();
        let (end, result) = match acquired {
            Some(Ok(lease)) => {
                let asked = Asked {
                    round,
                    due,
                    asked_ns,
                };
                return self.hold(asked, lease, at_ns).await;
            }
            Some(Err(error)) => self.not_acquired(round, at_ns, error),
            None => (ArrivalEnd::StillWaiting, Ok(())),
        };
        field.tally.not_granted(due, self.index, at_ns, end);
        field.recorder.arrival(&ArrivalRow {
            step: field.contenders,
            intended_ns: due.intended_ns,
            asked_ns: Some(asked_ns),
            granted_ns: None,
            ended_ns: at_ns,
            contender: Some(self.name.clone()),
            key,
            token: None,
            end,
        });
        result
    }

    /// A wait that came to its end because somebody else holds the lock is told
    /// of in the arrivals alone. As an event, `failed` would say that nobody
    /// knows whether the lock was held, and it certainly was not.
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
        match in_time {
            true => (ArrivalEnd::Failed, Err(Failed)),
            false => (ArrivalEnd::TimedOut, Err(Failed)),
        }
    }

    /// Work, write, release. A lease that is lost meanwhile keeps nobody from
    /// writing: that is what the fence is for.
    async fn hold(&mut self, asked: Asked, lease: Lease, granted_ns: u64) -> Result<(), Failed> {
        let field = Arc::clone(&self.field);
        let Asked {
            round,
            due,
            asked_ns,
        } = asked;
        let (key, token) = (lease.key().to_owned(), lease.fence());
        field.tally.granted(due, self.index, asked_ns, granted_ns);
        self.tell(
            granted_ns,
            EventKind::Acquired {
                round,
                key: key.clone(),
                token: Some(token),
                owner: lease.owner().to_owned(),
                valid_until_ns: Some(lease.valid_until_ns()),
            },
        );
        let work = field.plan.work.draw(&mut self.random);
        field.work(work).await;
        let writing_ns = raw_monotonic_ns();
        if let Some(reason) = lease.lost_reason() {
            self.tell(
                writing_ns,
                EventKind::Lost {
                    round,
                    key: key.clone(),
                    token: Some(token),
                    reason: reason.to_string(),
                },
            );
        }
        let written = self.write(round, &lease, writing_ns).await;
        let releasing_ns = raw_monotonic_ns();
        field.tally.lets_go(due.key, self.index, releasing_ns);
        self.tell(
            releasing_ns,
            EventKind::Releasing {
                round,
                key: key.clone(),
                token: Some(token),
            },
        );
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
            step: field.contenders,
            intended_ns: due.intended_ns,
            asked_ns: Some(asked_ns),
            granted_ns: Some(granted_ns),
            ended_ns: released_ns,
            contender: Some(self.name.clone()),
            key: key.clone(),
            token: Some(token.0),
            end: ArrivalEnd::Granted,
        });
        self.tell(
            released_ns,
            EventKind::Released {
                round,
                key,
                token: Some(token),
                outcome,
            },
        );
        written
    }

    async fn write(&self, round: u32, lease: &Lease, at_ns: u64) -> Result<(), Failed> {
        let (key, token) = (lease.key().to_owned(), lease.fence());
        let owner = lease.owner().to_owned();
        let body = format!(r#"{{"by":"{}","token":{token}}}"#, self.name);
        self.tell(
            at_ns,
            EventKind::Writing {
                round,
                key: key.clone(),
                token: Some(token),
                owner: owner.clone(),
                body: Some(BodyHash::of(body.as_bytes())),
            },
        );
        let attempt = WriteAttempt {
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
        match answer {
            Ok(_) => self.field.writes.went_right(),
            Err(error) => {
                self.field.writes.went_wrong(words(&error));
                return Err(Failed);
            }
        }
        Ok(())
    }

    fn tell(&self, at_ns: u64, kind: EventKind) {
        self.field.recorder.event(&Event {
            at_ns,
            worker: self.name.clone(),
            kind,
        });
    }
}

/// Somebody who asked.
struct Asked {
    round: u32,
    due: Due,
    asked_ns: u64,
}

/// Some step gave no usable answer, which was told.
struct Failed;

/// Without the key, which would make each error another one.
fn words(error: &ClientError) -> String {
    match error {
        ClientError::NoAnswer { reason, .. } => format!("the resource: no answer: {reason}"),
        ClientError::BadRequest { message, .. } => format!("the resource refused: {message}"),
        ClientError::Address { .. } => error.to_string(),
    }
}
