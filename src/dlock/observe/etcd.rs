use super::etcd_rows::{End, Lines, Standing};
use super::layout::Layout;
use super::readable;
use crate::clock::raw_monotonic_ns;
use crate::dlock::etcd::{Failure, Wire, check_address, wire};
use crate::dlock::{LockError, LockProblem};
use crate::model::{KeyTemplate, LockEvent, LockServers};
use etcd_client::{
    ConnectOptions, Event, GetOptions, GetResponse, KeyValue, WatchOptions, WatchResponse,
    WatchStream,
};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

/// Watches the locks of a cluster through one of its members and sends what it
/// held, for `locks.jsonl`. They are this program's own, or lie where `keys` says:
/// as the lock's own key or as places below it, the value of each being its owner.
///
/// `ready` is sent when no later grant can be missed, with the exact version of
/// the server. After `stop`, what the cluster had done until then is still
/// delivered, so the receiver has to be read to its end: a full one holds the
/// observer up. An error means that the rows are incomplete from here on: the
/// caller has to say so in its record.
///
/// A hold is `released` when its key was deleted and its lease lived on, and
/// `expired` when its lease was gone as well; one that was revoked cannot be
/// told from one that ran out. It is asked for when the deletion is seen, so a
/// lease that ends right after the release is taken for its cause. And every
/// release through the server's own lock service, which this library does by
/// revoking a lease, is an `expired`, and names no owner: that service writes
/// none.
pub async fn observe_etcd(
    address: &str,
    node_name: &str,
    keys: Option<&KeyTemplate>,
    tx: mpsc::Sender<LockEvent>,
    ready: oneshot::Sender<String>,
    stop: CancellationToken,
) -> Result<(), LockError> {
    let layout = Layout::new(LockServers::Etcd, keys);
    let shown = layout.shown();
    let error = |problem| LockError {
        backend: "etcd",
        node: node_name.to_owned(),
        key: shown.clone(),
        problem,
    };
    check_address(address).map_err(error)?;
    let observing = async {
        let (mut observer, version) = Observer::begin(address, node_name, layout, tx).await?;
        // The caller may have stopped waiting, but the rows are still wanted.
        let _ = ready.send(version);
        observer.watch(stop).await
    };
    let observed = observing.await;
    observed.map_err(|failure: Failure| error(LockProblem::from(failure)))
}

/// For each step that waits for the server, not for an event.
const STEP_TIMEOUT: Duration = Duration::from_secs(5);
/// A request for progress is not answered while the server has to catch up.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

struct Observer {
    wire: Wire,
    stream: WatchStream,
    layout: Layout,
    lines: Lines,
    tx: mpsc::Sender<LockEvent>,
}

/// Whether there is more to come.
enum Flow {
    On,
    End,
}

impl Observer {
    async fn begin(
        address: &str,
        node_name: &str,
        layout: Layout,
        tx: mpsc::Sender<LockEvent>,
    ) -> Result<(Observer, String), Failure> {
        // Without a leader nothing happens that could be missed: the watch
        // stays where it is and goes on with the cluster.
        let mut wire = wire(address, ConnectOptions::new()).await?;
        let status = in_time(wire.maintenance.status()).await?;
        let prefix = layout.prefix();
        let now = in_time(wire.kv.get(prefix, Some(GetOptions::new().with_prefix()))).await?;
        let options = WatchOptions::new()
            .with_prefix()
            .with_start_revision(revision_of(&now) + 1);
        let stream = in_time(wire.watch.watch(prefix, Some(options))).await?;
        let mut observer = Observer {
            wire,
            stream,
            layout,
            lines: Lines::new(node_name),
            tx,
        };
        for place in now.kvs() {
            // Who held it before we came is nobody's row, but their end is.
            let _before_our_time = observer.joined(0, place);
        }
        Ok((observer, status.version().to_owned()))
    }

    async fn watch(&mut self, stop: CancellationToken) -> Result<(), Failure> {
        loop {
            tokio::select! {
                answer = self.stream.message() => {
                    if let Flow::End = self.heard(answer?).await? {
                        return Ok(());
                    }
                }
                () = stop.cancelled() => break,
            }
        }
        let asked = in_time(
            self.wire
                .kv
                .get("/", Some(GetOptions::new().with_count_only())),
        );
        let last = revision_of(&asked.await?);
        let until_last = self.watch_until(last);
        let reached = timeout(STEP_TIMEOUT, until_last).await;
        reached.unwrap_or_else(|_| Err(unanswered("the end did not come")))
    }

    /// Until everything up to this revision was told.
    async fn watch_until(&mut self, last: i64) -> Result<(), Failure> {
        let mut next_request = Instant::now();
        loop {
            tokio::select! {
                answer = self.stream.message() => {
                    let is_last = answer.as_ref().is_ok_and(|answer| has_reached(answer, last));
                    let flow = self.heard(answer?).await?;
                    if is_last || matches!(flow, Flow::End) {
                        return Ok(());
                    }
                }
                () = sleep_until(next_request) => {
                    self.stream.request_progress().await?;
                    next_request = Instant::now() + PROGRESS_EVERY;
                }
            }
        }
    }

    async fn heard(&mut self, answer: Option<WatchResponse>) -> Result<Flow, Failure> {
        let at_ns = raw_monotonic_ns();
        let answer = answer.ok_or_else(|| unanswered("the connection ended"))?;
        if answer.canceled() {
            let reason = answer.cancel_reason();
            return Err(Failure::Refused(format!("the watch was ended: {reason}")));
        }
        for event in answer.events() {
            let rows = self.happened(at_ns, event).await?;
            for row in rows {
                // A caller who dropped the receiver wants no more.
                if self.tx.send(row).await.is_err() {
                    return Ok(Flow::End);
                }
            }
        }
        Ok(Flow::On)
    }

    async fn happened(&mut self, at_ns: u64, event: &Event) -> Result<Vec<LockEvent>, Failure> {
        let Some(place) = event.kv() else {
            return Ok(Vec::new());
        };
        // A deletion tells the key and when, and nothing else.
        if place.create_revision() > 0 {
            return Ok(self.joined(at_ns, place).into_iter().collect());
        }
        let Some(lock) = self.layout.lock_of_place(place.key()) else {
            return Ok(Vec::new());
        };
        let end = match self.lines.lease_of_holder(&lock, place.key()) {
            Some(lease) if !self.is_alive(lease).await? => End::WithItsLease,
            _ => End::Deleted,
        };
        Ok(self.lines.left(at_ns, &lock, place.key(), end))
    }

    fn joined(&mut self, at_ns: u64, place: &KeyValue) -> Option<LockEvent> {
        let lock = self.layout.lock_of_place(place.key())?;
        let owner = readable(place.value());
        let standing = Standing {
            owner: Some(owner).filter(|owner| !owner.is_empty()),
            lease: place.lease(),
        };
        let age = (place.create_revision(), place.key().to_vec());
        self.lines.joined(at_ns, &lock, age, standing)
    }

    async fn is_alive(&mut self, lease: i64) -> Result<bool, Failure> {
        if lease == 0 {
            return Ok(true);
        }
        match in_time(self.wire.lease.time_to_live(lease, None)).await {
            Ok(answer) => Ok(answer.ttl() > 0),
            Err(Failure::LeaseGone) => Ok(false),
            Err(failure) => Err(failure),
        }
    }
}

fn has_reached(answer: &Option<WatchResponse>, last: i64) -> bool {
    let Some(answer) = answer else {
        return false;
    };
    let revision = match answer.events() {
        // A notice of progress tells how far everything was told.
        [] if !answer.created() => answer.header().map(|header| header.revision()),
        [.., latest] => latest.kv().map(KeyValue::mod_revision),
        [] => None,
    };
    revision.is_some_and(|revision| revision >= last)
}

fn revision_of(answer: &GetResponse) -> i64 {
    answer.header().map_or(0, |header| header.revision())
}

fn unanswered(text: &str) -> Failure {
    Failure::Unanswered(text.to_owned())
}

async fn in_time<T>(
    step: impl Future<Output = Result<T, etcd_client::Error>>,
) -> Result<T, Failure> {
    match timeout(STEP_TIMEOUT, step).await {
        Ok(answer) => answer.map_err(Failure::from),
        Err(_) => Err(unanswered("nothing within 5 s")),
    }
}
