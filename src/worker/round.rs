use super::WorkerTask;
use super::protocol::{Emitter, Gates};
use crate::clock::stand_still;
use crate::model::{BodyHash, EventKind, Fence, Gate, ReleaseOutcome, RowValue, Step};
use crate::resource::{ClientError, ResourceClient, WriteAnswer, WriteRequest};
use crate::services;
use crate::services::{OnLost, ReleaseStyle};
use fencing_lock::{Hold, Lease, ReentrantLocks, Released, keep_renewed};
use std::io;
use tokio::time::{Instant, sleep};

/// Everything that each round of one worker needs.
pub(super) struct Rounds<'a> {
    pub(super) task: &'a WorkerTask,
    pub(super) locks: &'a ReentrantLocks,
    pub(super) resource: &'a ResourceClient,
    pub(super) emitter: &'a Emitter,
    pub(super) gates: &'a Gates,
}

/// The result of a round, for the code that plays the next one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Played {
    ToTheEnd,
    /// A step got no usable answer.
    Failed,
}

impl Rounds<'_> {
    /// Plays one round: acquire, read, work, write, release. Only a broken output is an error;
    /// everything else that can go wrong is reported as an event.
    pub(super) async fn play(&self, round: u32) -> io::Result<Played> {
        let key = self.task.key.clone();
        self.emit(EventKind::Acquiring { round, key })?;
        let deadline = Instant::now() + self.task.acquire_timeout;
        let outer = match self.locks.acquire(&self.task.key, deadline).await {
            Ok(hold) => hold,
            Err(error) => return self.failed(round, Step::Acquire, error),
        };
        self.emit(EventKind::Acquired {
            round,
            key: self.task.key.clone(),
            token: Some(outer.fence()),
            owner: outer.owner().to_owned(),
            valid_until_ns: Some(services::valid_until_ns(&outer)),
        })?;
        let played = self.hold(round, &outer).await?;
        self.resource.leave();
        self.release(round, outer).await?;
        Ok(played)
    }

    /// Does everything under the lock, with the watchdog beside it if the task renews.
    async fn hold(&self, round: u32, outer: &Hold) -> io::Result<Played> {
        let watchdog = async {
            if self.task.renew {
                keep_renewed(outer, || self.renewed(round, outer)).await;
            }
            // The watchdog does not act on a lost lease: the round checks for it and decides.
            std::future::pending::<()>().await
        };
        tokio::select! {
            // The round comes first: when a frozen worker wakes up at its gate, it sends the
            // write before the watchdog notices anything.
            biased;
            result = self.in_and_out(round, outer) => result,
            () = watchdog => unreachable!("a watchdog never completes"),
        }
    }

    /// Enters the nested holds down to the innermost, does the work there, and leaves them again.
    async fn in_and_out(&self, round: u32, outer: &Hold) -> io::Result<Played> {
        self.pass(Gate::AfterAcquire, round).await?;
        let inner = self.reenter(round, outer)?;
        let innermost = inner.last().unwrap_or(outer);
        let played = self.read_work_write(round, innermost).await?;
        self.leave(round, inner).await?;
        Ok(played)
    }

    /// Enters the lock again up to the wanted depth. It stops at a lost lease without an event;
    /// the round reports the loss when it checks the lease.
    fn reenter(&self, round: u32, outer: &Hold) -> io::Result<Vec<Hold>> {
        let mut inner = Vec::new();
        while inner.len() + 1 < self.task.nested
            && let Ok(hold) = outer.reenter()
        {
            self.emit(EventKind::Reentered {
                round,
                key: self.task.key.clone(),
                token: Some(hold.fence()),
                holds: hold.holds(),
            })?;
            inner.push(hold);
        }
        Ok(inner)
    }

    async fn leave(&self, round: u32, mut inner: Vec<Hold>) -> io::Result<()> {
        if !inner.is_empty() {
            self.pass(Gate::BeforeLeave, round).await?;
        }
        while let Some(hold) = inner.pop() {
            let token = Some(hold.fence());
            if let Released::StillHeld { holds } = hold.release().await {
                self.emit(EventKind::Left {
                    round,
                    key: self.task.key.clone(),
                    token,
                    holds,
                })?;
            }
        }
        Ok(())
    }

    async fn read_work_write(&self, round: u32, lease: &Lease) -> io::Result<Played> {
        let basis = match self.read(lease).await {
            Ok(basis) => basis,
            Err(error) => return self.failed(round, Step::Read, error),
        };
        self.work(lease).await;
        if !self.task.pause.is_zero() {
            // This blocks the one thread that everything runs on, including the watchdog.
            stand_still(self.task.pause).await;
        }
        if let Some(reason) = lease.lost_reason() {
            self.emit(EventKind::Lost {
                round,
                key: self.task.key.clone(),
                token: Some(lease.fence()),
                reason: reason.to_string(),
            })?;
            if self.task.on_lost == OnLost::Stop {
                return Ok(Played::ToTheEnd);
            }
        }
        // Nothing checks the lease between here and the send, so whatever happens at this gate
        // happens after the last check. That is the purpose of the gate.
        self.pass(Gate::BeforeWrite, round).await?;
        self.write(round, lease, basis).await
    }

    async fn work(&self, lease: &Lease) {
        let lost = async {
            match self.task.on_lost {
                OnLost::Stop => lease.lost().await,
                OnLost::Ignore => std::future::pending().await,
            };
        };
        tokio::select! {
            biased;
            () = sleep(self.task.work) => {}
            () = lost => {}
        }
    }

    async fn read(&self, lease: &Lease) -> Result<Basis, ClientError> {
        if !self.task.reads {
            return Ok(Basis::default());
        }
        let stored = self.resource.begin(&self.task.key, lease.fence()).await?;
        // Positions begin at 1, so 0 means that there was no value yet.
        Ok(stored.map_or(
            Basis {
                count: 0,
                position: Some(0),
            },
            |stored| Basis {
                count: count(&stored.value),
                position: Some(stored.position),
            },
        ))
    }

    async fn write(&self, round: u32, lease: &Lease, basis: Basis) -> io::Result<Played> {
        let key = self.task.key.clone();
        let (token, owner) = (lease.fence(), lease.owner().to_owned());
        let body = serde_json::json!({
            "count": basis.count.saturating_add(1),
            "by": self.task.worker,
            "token": token,
        });
        let body = body.to_string();
        self.emit(EventKind::Writing {
            round,
            key: key.clone(),
            token: Some(token),
            owner: owner.clone(),
            body: Some(BodyHash::of(body.as_bytes())),
        })?;
        let attempt = WriteRequest {
            key: key.clone(),
            token: (self.task.fence == Fence::On).then_some(token),
            token_seq: 0,
            owner: Some(owner.clone()),
            based_on: basis.position,
            body: body.into(),
        };
        let answer = match self.resource.put(&attempt).await {
            Ok(WriteAnswer::Accepted { position }) => EventKind::WriteAccepted {
                round,
                key,
                token: Some(token),
                owner,
                position,
            },
            Ok(WriteAnswer::Rejected { seen, got }) => EventKind::WriteRejected {
                round,
                key,
                owner,
                seen,
                got,
            },
            Err(error) => return self.failed(round, Step::Write, error),
        };
        self.emit(answer)?;
        Ok(Played::ToTheEnd)
    }

    async fn release(&self, round: u32, outer: Hold) -> io::Result<()> {
        self.pass(Gate::BeforeRelease, round).await?;
        let lease = outer.into_lease().expect("the inner holds have been left");
        let (key, token) = (self.task.key.clone(), Some(lease.fence()));
        self.emit(EventKind::Releasing {
            round,
            key: key.clone(),
            token,
        })?;
        let outcome = match self.task.release {
            ReleaseStyle::CompareAndDelete => services::outcome(lease.release().await),
            ReleaseStyle::UnsafeGetThenDel => self.release_unsafely(round, lease).await?,
        };
        self.emit(EventKind::Released {
            round,
            key,
            token,
            outcome,
        })
    }

    async fn release_unsafely(&self, round: u32, lease: Lease) -> io::Result<ReleaseOutcome> {
        let mut passed = Ok(());
        let between = async { passed = self.pass(Gate::BetweenGetAndDel, round).await };
        let outcome = lease.release_unsafe_get_then_del(Box::pin(between)).await;
        passed.map(|()| services::outcome(outcome))
    }

    fn renewed(&self, round: u32, lease: &Lease) {
        // If the output broke here, it is still broken at the round's next event, and that ends
        // the worker.
        let _ = self.emit(EventKind::Renewed {
            round,
            key: self.task.key.clone(),
            token: Some(lease.fence()),
            valid_until_ns: Some(services::valid_until_ns(lease)),
        });
    }

    fn failed(
        &self,
        round: u32,
        during: Step,
        error: impl std::error::Error,
    ) -> io::Result<Played> {
        self.emit(EventKind::Failed {
            round,
            during,
            error: error.to_string(),
        })?;
        Ok(Played::Failed)
    }

    async fn pass(&self, gate: Gate, round: u32) -> io::Result<()> {
        self.gates.pass(gate, round, self.emitter).await
    }

    fn emit(&self, kind: EventKind) -> io::Result<()> {
        self.emitter.emit(kind)
    }
}

/// The value that a write is based on.
#[derive(Default)]
struct Basis {
    count: u64,
    /// The position of the value that was read; None if nothing was read.
    position: Option<u64>,
}

/// Returns how often the value was written before, according to the value itself. A value that
/// no worker of ours wrote counts as 0.
fn count(value: &RowValue) -> u64 {
    serde_json::from_slice::<serde_json::Value>(value.as_bytes())
        .ok()
        .and_then(|value| value.get("count")?.as_u64())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_goes_on_from_what_was_read() {
        let value = |text: &str| RowValue::Text(text.to_owned());
        assert_eq!(count(&value(r#"{"count":41,"by":"a","token":3}"#)), 41);
        for other in ["", "41", "[]", r#"{"count":-1}"#, r#"{"count":"41"}"#] {
            assert_eq!(count(&value(other)), 0, "{other}");
        }
        assert_eq!(count(&RowValue::Bytes(vec![0xff])), 0);
    }
}
