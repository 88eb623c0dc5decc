use super::rows::{EtcdRows, Written};
use crate::services::observe::*;
use etcd_client::{
    ConnectOptions, Event, GetOptions, GetResponse, KeyValue, WatchOptions, WatchResponse,
    WatchStream,
};
use fencing_lock::servers::{
    EtcdFailure as Failure, EtcdWire as Wire, check_etcd_address as check_address,
    etcd_wire as wire,
};
use tokio::time::sleep_until;

/// Watches the locks of a cluster through one of its members. A lock of another library is its own
/// key or places below it, and the value of each is its owner.
///
/// A hold is `released` when its key was deleted and its lease lived on, and `expired` when its
/// lease was gone as well; a revoked lease looks the same as an expired one. The lease is looked
/// up when the deletion is seen, so a lease that ends right after the release is taken for its
/// cause. Every release through the server's own lock service, which this library does by revoking
/// a lease, is an `expired` and names no owner, because that service writes none.
pub async fn observe_etcd(watch: Watch<'_>, layout: Layout) -> Result<(), LockProblem> {
    check_address(watch.address)?;
    let (mut observer, version) =
        Observer::begin(watch.address, watch.node, layout, watch.events).await?;
    // The caller may have stopped waiting, but the rows are still wanted.
    let _ = watch.ready.send(version);
    Ok(observer.watch(watch.stop).await?)
}

/// A request for progress is not answered while the server has to catch up.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

struct Observer {
    wire: Wire,
    stream: WatchStream,
    rows: EtcdRows,
    tx: mpsc::Sender<LockEvent>,
}

impl Observer {
    async fn begin(
        address: &str,
        node_name: &str,
        layout: Layout,
        tx: mpsc::Sender<LockEvent>,
    ) -> Result<(Observer, String), Failure> {
        // Without a leader nothing happens that could be missed: the watch stays where it is and
        // goes on with the cluster.
        let mut wire = wire(address, ConnectOptions::new()).await?;
        let status = in_time(wire.maintenance.status()).await?;
        let prefix = layout.prefix();
        let now = in_time(
            wire.kv
                .get(prefix.as_str(), Some(GetOptions::new().with_prefix())),
        )
        .await?;
        let options = WatchOptions::new()
            .with_prefix()
            .with_start_revision(revision_of(&now) + 1);
        let stream = in_time(wire.watch.watch(prefix, Some(options))).await?;
        let mut observer = Observer {
            wire,
            stream,
            rows: EtcdRows::new(node_name, layout),
            tx,
        };
        for place in now.kvs() {
            // A grant from before the watch gets no row, but its end does.
            let _before_our_time = observer.joined(0, place);
        }
        Ok((observer, status.version().to_owned()))
    }

    async fn watch(&mut self, stop: CancellationToken) -> Result<(), Failure> {
        loop {
            tokio::select! {
                answer = self.stream.message() => {
                    if self.heard(answer?).await?.is_break() {
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

    /// Watches until everything up to this revision was reported.
    async fn watch_until(&mut self, last: i64) -> Result<(), Failure> {
        let mut next_request = Instant::now();
        loop {
            tokio::select! {
                answer = self.stream.message() => {
                    let is_last = answer.as_ref().is_ok_and(|answer| has_reached(answer, last));
                    let flow = self.heard(answer?).await?;
                    if is_last || flow.is_break() {
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

    async fn heard(&mut self, answer: Option<WatchResponse>) -> Result<ControlFlow<()>, Failure> {
        let at_ns = raw_monotonic_ns();
        let answer = answer.ok_or_else(|| unanswered("the connection ended"))?;
        if answer.canceled() {
            let reason = answer.cancel_reason();
            return Err(Failure::Refused(format!("the watch was ended: {reason}")));
        }
        for event in answer.events() {
            let rows = self.happened(at_ns, event).await?;
            if send(&self.tx, rows).await.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    async fn happened(&mut self, at_ns: u64, event: &Event) -> Result<Vec<LockEvent>, Failure> {
        let Some(place) = event.kv() else {
            return Ok(Vec::new());
        };
        // A deletion reports the key and the time, and nothing else.
        if place.create_revision() > 0 {
            return Ok(self.joined(at_ns, place).into_iter().collect());
        }
        let lease_lives = match self.rows.lease_of_holder(place.key()) {
            Some(lease) => self.is_alive(lease).await?,
            None => true,
        };
        Ok(self.rows.deleted(at_ns, place.key(), lease_lives))
    }

    fn joined(&mut self, at_ns: u64, place: &KeyValue) -> Option<LockEvent> {
        let written = Written {
            key: place.key(),
            owner: place.value(),
            create_revision: place.create_revision(),
            lease: place.lease(),
        };
        self.rows.written(at_ns, &written)
    }

    async fn is_alive(&mut self, lease: i64) -> Result<bool, Failure> {
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
        // A progress notice says up to which revision everything was reported.
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
