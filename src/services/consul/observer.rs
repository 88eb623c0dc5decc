use super::rows::Keys;
use crate::services::observe::*;
use fencing_lock::servers::{ConsulAgent, ConsulEntry};
use fencing_lock::{ConsulSettings, Env};
use std::collections::BTreeSet;

/// Watches the locks of one Consul by queries that wait for the next state of all their keys.
///
/// What happens between two answers is not seen one by one. Every grant counts in the key's
/// `LockIndex`, so it is seen how many were missed, and each is a `granted` without an owner; a
/// release and the next grant between two answers are both known. What is missed for good: the
/// owners of such grants, and everything about a key that was deleted and not made again.
///
/// A hold is `released` when its session is still there, and `expired` when it is not; a session
/// that was destroyed looks like one that expired. The session is looked up when the change is
/// seen, so one that ends right after a release is taken for its cause.
pub async fn observe_consul(watch: Watch<'_>, layout: Layout) -> Result<(), LockProblem> {
    let settings = ConsulSettings {
        connect_timeout: STEP_TIMEOUT,
        response_timeout: STEP_TIMEOUT,
        ..ConsulSettings::default()
    };
    let agent = ConsulAgent::at(watch.address, settings, Env::default())?;
    let version = agent.version().await?;
    let (since, entries) = agent
        .changed_below(&layout.prefix(), 0, Duration::ZERO)
        .await?;
    let mut keys = Keys::new(watch.node, layout);
    // A grant from before the watch gets no row, but its end does.
    keys.begin(&entries);
    // The caller may have stopped waiting, but the rows are still wanted.
    let _ = watch.ready.send(version);
    let mut observer = Observer {
        agent,
        keys,
        since,
        events: watch.events,
    };
    observer.watch(watch.stop).await
}

/// How long one query waits for the next state.
const WAIT: Duration = Duration::from_secs(60);

struct Observer {
    agent: ConsulAgent,
    keys: Keys,
    /// The index of the last state.
    since: u64,
    events: mpsc::Sender<LockEvent>,
}

impl Observer {
    async fn watch(&mut self, stop: CancellationToken) -> Result<(), LockProblem> {
        loop {
            let prefix = &self.keys.prefix();
            let changed = self.agent.changed_below(prefix, self.since, WAIT);
            let (index, entries) = tokio::select! {
                changed = changed => changed?,
                () = stop.cancelled() => break,
            };
            if self.heard(index, &entries).await?.is_break() {
                return Ok(());
            }
        }
        // One more look at everything that had happened by then.
        let prefix = &self.keys.prefix();
        let (index, entries) = self.agent.changed_below(prefix, 0, Duration::ZERO).await?;
        self.heard(index, &entries).await.map(drop)
    }

    async fn heard(
        &mut self,
        index: u64,
        entries: &[ConsulEntry],
    ) -> Result<ControlFlow<()>, LockProblem> {
        let at_ns = raw_monotonic_ns();
        // An index that runs backwards is of another log, and the next query must not wait for it.
        self.since = if index < self.since { 0 } else { index };
        let mut gone = BTreeSet::new();
        for session in self.keys.ending(entries) {
            if !self.agent.has_session(&session).await? {
                gone.insert(session);
            }
        }
        let rows = self.keys.changed(at_ns, entries, &gone);
        Ok(send(&self.events, rows).await)
    }
}
