//! One client alone: the cost of a lock that nobody else wants, beside the two cheapest writes of
//! its service. Both take turns in blocks, so that the machine is the same for both.

use super::*;
use crate::model::{Event, EventKind, Uncontended};
use crate::services::BareWrites;
use fencing_lock::Lease;
use tokio::time::Instant;

/// The pairs of one kind in a row.
const BLOCK: u32 = 20;
const WORKER: &str = "alone";
const KEY: &str = "uncontended";

pub(super) async fn measure(
    run: &Run<'_>,
    servers: &[String],
    lasting: Duration,
) -> LoadResult<Uncontended> {
    run.task.detail("one client alone");
    let service = run.plan.lock.backend.service();
    let failed = |reason: String| LoadError::CutShort(format!("uncontended: {reason}"));
    let writes = service.floor.open(servers).await;
    let mut alone = Alone {
        run,
        client: &run.clients[0],
        writes: writes.map_err(|problem| failed(problem.to_string()))?,
        rounds: 0,
        lock: Timings::default(),
        floor: Timings::default(),
    };
    alone.tell(raw_monotonic_ns(), EventKind::ready(Vec::new()));
    let end = Instant::now() + lasting;
    while Instant::now() < end {
        if run.interrupt.is_cancelled() {
            return Err(LoadError::CutShort("interrupted".to_owned()));
        }
        alone.block().await.map_err(failed)?;
    }
    let rounds = alone.rounds;
    alone.tell(raw_monotonic_ns(), EventKind::Done { rounds });
    Ok(Uncontended {
        lock: alone.lock.latency(),
        floor: alone.floor.latency(),
        writes: service.floor.words.to_owned(),
    })
}

struct Alone<'a> {
    run: &'a Run<'a>,
    client: &'a LockClient,
    writes: BareWrites,
    rounds: u32,
    lock: Timings,
    floor: Timings,
}

impl Alone<'_> {
    async fn block(&mut self) -> Result<(), String> {
        for _ in 0..BLOCK {
            self.pair().await.map_err(|error| error.to_string())?;
        }
        for _ in 0..BLOCK {
            let from_ns = raw_monotonic_ns();
            let written = (self.writes)().await;
            written.map_err(|problem| format!("the bare writes: {problem}"))?;
            self.floor.record(from_ns, raw_monotonic_ns());
        }
        Ok(())
    }

    /// Acquires and releases. The events are told afterwards, so that they are not measured.
    async fn pair(&mut self) -> Result<(), LockError> {
        self.rounds += 1;
        let asked_ns = raw_monotonic_ns();
        let deadline = Instant::now() + self.run.plan.timeout;
        let lease = self.client.acquire(KEY, deadline).await?;
        let granted_ns = raw_monotonic_ns();
        let acquired = self.acquired(&lease);
        let token = Some(lease.fence());
        let releasing_ns = raw_monotonic_ns();
        let outcome = services::outcome(lease.release().await);
        let released_ns = raw_monotonic_ns();
        let held_ns = releasing_ns - granted_ns;
        self.lock.record(asked_ns, released_ns - held_ns);
        let (round, key) = (self.rounds, KEY.to_owned());
        let acquiring = EventKind::Acquiring {
            round,
            key: key.clone(),
        };
        let releasing = EventKind::Releasing {
            round,
            key: key.clone(),
            token,
        };
        let released = EventKind::Released {
            round,
            key,
            token,
            outcome,
        };
        self.tell(asked_ns, acquiring);
        self.tell(granted_ns, acquired);
        self.tell(releasing_ns, releasing);
        self.tell(released_ns, released);
        Ok(())
    }

    fn acquired(&self, lease: &Lease) -> EventKind {
        EventKind::Acquired {
            round: self.rounds,
            key: KEY.to_owned(),
            token: Some(lease.fence()),
            owner: lease.owner().to_owned(),
            valid_until_ns: Some(services::valid_until_ns(lease)),
        }
    }

    fn tell(&self, at_ns: u64, kind: EventKind) {
        self.run.recorder.event(&Event {
            at_ns,
            worker: WORKER.to_owned(),
            kind,
        });
    }
}
