use super::status;
use crate::services::observe::lines::{End, Lines, LockPlace};
use crate::services::observe::*;
use fencing_lock::servers::{
    ZOOKEEPER_LOCKS, ZOOKEEPER_SESSIONS, check_zookeeper_address, lock_and_place_of_zookeeper,
    owner_of_zookeeper_place,
};
use futures_util::FutureExt;
use std::collections::HashSet;
use zookeeper_client::{
    AddWatchMode, Client, Error, EventType, PersistentWatcher, Stat, WatchedEvent,
};

/// Watches the locks of an ensemble through one of its members.
///
/// The server reports only that a node is there or gone, so its token is asked for when its
/// creation is seen. A place that is deleted before the answer has none; its owner is in its name.
///
/// A hold is `released` when its node was deleted and its session lived on, and `expired` when
/// its session was gone as well; a session that was closed looks the same as an expired one. The
/// session is looked up by its mark when the deletion is seen.
pub async fn observe_zookeeper(watch: Watch<'_>, layout: Layout) -> Result<(), LockProblem> {
    check_zookeeper_address(watch.address)?;
    if !layout.is_own() {
        let problem = "only the locks of this project can be watched in a ZooKeeper";
        return Err(LockProblem::BadServers(problem.to_owned()));
    }
    let status = status(watch.address, STEP_TIMEOUT).await;
    let status = status.map_err(|error| LockProblem::Unreachable(error.to_string()))?;
    let mut observer = Observer::begin(watch.address, watch.node, watch.events).await?;
    // The caller may have stopped waiting, but the rows are still wanted.
    let _ = watch.ready.send(status.version);
    observer.watch(watch.stop).await
}

/// The end of this session would end the watch, so it is longer than any election.
const SESSION: Duration = Duration::from_secs(10);

struct Observer {
    client: Client,
    watcher: PersistentWatcher,
    lines: Lines,
    /// The places that are in `lines`.
    known: HashSet<String>,
    /// The marks of sessions, by their ids.
    marks: HashMap<i64, String>,
    tx: mpsc::Sender<LockEvent>,
}

impl Observer {
    async fn begin(
        address: &str,
        node_name: &str,
        tx: mpsc::Sender<LockEvent>,
    ) -> Result<Observer, LockProblem> {
        let connector = Client::connector().with_session_timeout(SESSION);
        let client = in_time(connector.with_fail_eagerly().connect(address)).await?;
        let watched = client.watch(ZOOKEEPER_LOCKS, AddWatchMode::PersistentRecursive);
        let watcher = in_time(watched).await?;
        let mut observer = Observer {
            client,
            watcher,
            lines: Lines::new(node_name),
            known: HashSet::new(),
            marks: HashMap::new(),
            tx,
        };
        for line in observer.children(ZOOKEEPER_LOCKS).await? {
            let line = format!("{ZOOKEEPER_LOCKS}/{line}");
            for place in observer.children(&line).await? {
                // A grant from before the watch gets no row, but its end does.
                let place = format!("{line}/{place}");
                let _before_our_time = observer.joined(0, &place).await?;
            }
        }
        Ok(observer)
    }

    async fn watch(&mut self, stop: CancellationToken) -> Result<(), LockProblem> {
        loop {
            let event = tokio::select! {
                event = self.watcher.changed() => event,
                () = stop.cancelled() => break,
            };
            if self.heard(event).await?.is_break() {
                return Ok(());
            }
        }
        // Events come before the answer to a request that was made later.
        in_time(self.client.sync(ZOOKEEPER_LOCKS)).await?;
        in_time(self.client.check_stat(ZOOKEEPER_LOCKS)).await?;
        while let Some(event) = self.watcher.changed().now_or_never() {
            if self.heard(event).await?.is_break() {
                break;
            }
        }
        Ok(())
    }

    async fn heard(&mut self, event: WatchedEvent) -> Result<ControlFlow<()>, LockProblem> {
        let at_ns = raw_monotonic_ns();
        let rows = match event.event_type {
            // What happened in between is not reported (ZOOKEEPER-4698).
            EventType::Session => {
                let problem = "the connection ended".to_owned();
                return Err(LockProblem::NoAnswer(problem));
            }
            EventType::NodeCreated => self.joined(at_ns, &event.path).await?.into_iter().collect(),
            EventType::NodeDeleted => self.left(at_ns, &event.path).await?,
            EventType::NodeDataChanged | EventType::NodeChildrenChanged => Vec::new(),
        };
        Ok(send(&self.tx, rows).await)
    }

    async fn joined(&mut self, at_ns: u64, path: &str) -> Result<Option<LockEvent>, LockProblem> {
        let Some((lock, place)) = lock_and_place_of_zookeeper(path) else {
            return Ok(None);
        };
        let Some((owner, number)) = owner_of_zookeeper_place(place) else {
            return Ok(None);
        };
        if !self.known.insert(path.to_owned()) {
            return Ok(None);
        }
        let stat = self.stat(path).await?;
        if let Some(stat) = &stat {
            self.learn_mark(stat.ephemeral_owner).await?;
        }
        let standing = LockPlace {
            owner: Some(owner.to_owned()),
            token: stat.and_then(|stat| u64::try_from(stat.czxid).ok().map(FencingToken)),
            lease: stat.map_or(0, |stat| stat.ephemeral_owner),
        };
        let age = (number.into(), path.as_bytes().to_vec());
        Ok(self.lines.joined(at_ns, &lock, age, standing))
    }

    async fn left(&mut self, at_ns: u64, path: &str) -> Result<Vec<LockEvent>, LockProblem> {
        if !self.known.remove(path) {
            return Ok(Vec::new());
        }
        let Some((lock, _)) = lock_and_place_of_zookeeper(path) else {
            return Ok(Vec::new());
        };
        let session = self.lines.lease_of_holder(&lock, path.as_bytes());
        let end = match session
            .and_then(|session| self.marks.get(&session))
            .cloned()
        {
            // All nodes of a session are deleted at once.
            Some(mark) if self.stat(&mark).await?.is_none() => End::WithItsLease,
            _ => End::Deleted,
        };
        Ok(self.lines.left(at_ns, &lock, path.as_bytes(), end))
    }

    /// Finds the mark of a session that is new.
    async fn learn_mark(&mut self, session: i64) -> Result<(), LockProblem> {
        if self.marks.contains_key(&session) {
            return Ok(());
        }
        let all = self.children(ZOOKEEPER_SESSIONS).await?;
        let all: HashSet<String> = all
            .into_iter()
            .map(|mark| format!("{ZOOKEEPER_SESSIONS}/{mark}"))
            .collect();
        // A session that is over has no places any more, or will be found to be.
        let known: HashSet<String> = self.marks.values().cloned().collect();
        for mark in all.difference(&known) {
            if let Some(stat) = self.stat(mark).await? {
                self.marks.insert(stat.ephemeral_owner, mark.clone());
            }
        }
        Ok(())
    }

    async fn children(&self, path: &str) -> Result<Vec<String>, LockProblem> {
        let listing = async {
            match self.client.list_children(path).await {
                Err(Error::NoNode) => Ok(Vec::new()),
                listed => listed,
            }
        };
        in_time(listing).await
    }

    async fn stat(&self, path: &str) -> Result<Option<Stat>, LockProblem> {
        in_time(self.client.check_stat(path)).await
    }
}

async fn in_time<T>(step: impl Future<Output = Result<T, Error>>) -> Result<T, LockProblem> {
    match timeout(STEP_TIMEOUT, step).await {
        Ok(answer) => answer.map_err(|error| LockProblem::NoAnswer(error.to_string())),
        Err(_) => Err(LockProblem::NoAnswer("nothing within 5 s".to_owned())),
    }
}
