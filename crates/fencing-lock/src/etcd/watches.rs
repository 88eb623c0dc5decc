use super::failure::Failure;
use super::members::Members;
use super::wire::Wire;
use crate::task::Task;
use etcd_client::{
    Event, WatchFilterType, WatchOptions, WatchRequestSender, WatchResponse, WatchResponseStream,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

/// The watches for deleted keys: one stream to the preferred member for all waiters of
/// this process.
///
/// Each watch is for one key, and begins with the state in which the server learned of
/// it. The server serves a watch that has to catch up first from a loop that runs every
/// 100 ms. This one is served at once, and the waiter itself looks for earlier deletions.
pub(super) struct Watches {
    shared: Arc<WatchState>,
    _stream: Task,
    _probe: Task,
}

/// The progress of a watch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Stage {
    Asked,
    /// Deletions after this revision are reported.
    Standing {
        since: i64,
    },
    /// The key was deleted at this revision.
    Gone {
        at: i64,
    },
    /// Nothing will be reported any more: look, and watch again.
    Broken,
}

/// One waiter; dropping it ends the watch.
pub(super) struct Watching {
    shared: Arc<WatchState>,
    id: i64,
    stage: watch::Receiver<Stage>,
}

#[derive(Default)]
struct WatchState {
    table: Mutex<Table>,
    /// Notified when there is something to send to the server.
    news: Notify,
}

#[derive(Default)]
struct Table {
    last_id: i64,
    /// The waiters, by the id of their watch: so they are told in the order in which they
    /// came.
    waiting: BTreeMap<i64, Waiter>,
    to_open: VecDeque<i64>,
    to_cancel: Vec<i64>,
}

struct Waiter {
    key: Vec<u8>,
    stage: watch::Sender<Stage>,
}

const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(50);

impl Watches {
    pub(super) fn start(members: Arc<Members>) -> Watches {
        let shared = Arc::new(WatchState::default());
        let (asked, waited) = (members.clone(), shared.clone());
        let probe =
            async move { match asked.probe(|| !waited.table().waiting.is_empty()).await {} };
        let env = members.env().clone();
        Watches {
            _stream: env.spawn(serve_all(members, shared.clone())),
            _probe: env.spawn(probe),
            shared,
        }
    }

    /// Starts a watch for the deletion of this key.
    pub(super) fn watch(&self, key: Vec<u8>) -> Watching {
        let (sender, stage) = watch::channel(Stage::Asked);
        let mut table = self.shared.table();
        table.last_id += 1;
        let id = table.last_id;
        table.waiting.insert(id, Waiter { key, stage: sender });
        table.to_open.push_back(id);
        drop(table);
        self.shared.news.notify_one();
        Watching {
            shared: self.shared.clone(),
            id,
            stage,
        }
    }
}

impl Watching {
    /// Waits for the next stage.
    pub(super) async fn next(&mut self) -> Stage {
        match self.stage.changed().await {
            Ok(()) => *self.stage.borrow_and_update(),
            Err(_) => Stage::Broken,
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let mut table = self.shared.table();
        let was_waiting = table.waiting.remove(&self.id).is_some();
        if let Some(index) = table.to_open.iter().position(|id| *id == self.id) {
            // The server never learned of it.
            table.to_open.remove(index);
        } else if was_waiting {
            table.to_cancel.push(self.id);
            drop(table);
            self.shared.news.notify_one();
        }
    }
}

impl WatchState {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().expect("nobody panics while holding it")
    }

    fn open_next(&self) -> Option<(i64, Vec<u8>)> {
        let mut table = self.table();
        let id = table.to_open.pop_front()?;
        let waiter = table.waiting.get(&id)?;
        Some((id, waiter.key.clone()))
    }

    fn tell(&self, id: i64, stage: Stage) {
        let mut table = self.table();
        let is_end = !matches!(stage, Stage::Standing { .. });
        if !is_end {
            if let Some(waiter) = table.waiting.get(&id) {
                waiter.stage.send_replace(stage);
            }
        } else if let Some(waiter) = table.waiting.remove(&id) {
            waiter.stage.send_replace(stage);
            if let Stage::Gone { .. } = stage {
                table.to_cancel.push(id);
                drop(table);
                self.news.notify_one();
            }
        }
    }

    /// Makes the waiters on the ended stream look for themselves.
    fn stream_ended(&self) {
        let mut table = self.table();
        table.to_cancel.clear();
        let not_opened = std::mem::take(&mut table.to_open);
        table.waiting.retain(|id, waiter| {
            let is_untouched = not_opened.contains(id);
            if !is_untouched {
                waiter.stage.send_replace(Stage::Broken);
            }
            is_untouched
        });
        table.to_open = not_opened;
    }
}

/// Serves one stream after the other, for as long as anybody waits.
async fn serve_all(members: Arc<Members>, shared: Arc<WatchState>) {
    loop {
        let first = loop {
            if let Some(first) = shared.open_next() {
                break first;
            }
            shared.news.notified().await;
        };
        let ended = serve(&members, &shared, first).await;
        shared.stream_ended();
        if ended.is_err() {
            sleep(PAUSE_AFTER_FAILURE).await;
        }
    }
}

/// Serves one stream, and returns when another member should be asked.
async fn serve(
    members: &Members,
    shared: &WatchState,
    (id, key): (i64, Vec<u8>),
) -> Result<(), Failure> {
    let (index, wire, mut changes) = members.preferred().await?;
    members.requests().inc();
    let opened = timeout(members.request_timeout(), open(wire, id, key)).await;
    let opened = opened.unwrap_or_else(|_| Err(Failure::too_slow(members.request_timeout())));
    let (requests, answers) = opened.inspect_err(|_| members.prefer_after(index))?;
    // Do both at once: a server whose answers are not read stops reading requests. None of
    // the three starves another: each is polled until it has to wait or is at its end.
    tokio::select! {
        biased;
        _ = changes.changed() => {}
        ended = receive(answers, shared) => {
            members.prefer_after(index);
            ended?;
        }
        ended = send(members, requests, shared) => ended?,
    }
    Ok(())
}

async fn open(
    mut wire: Wire,
    id: i64,
    key: Vec<u8>,
) -> Result<(WatchRequestSender, WatchResponseStream), Failure> {
    let stream = wire.watch.watch(key, Some(options(id))).await?;
    Ok(stream.split())
}

fn options(id: i64) -> WatchOptions {
    WatchOptions::new()
        .with_watch_id(id)
        .with_filters([WatchFilterType::NoPut])
}

async fn send(
    members: &Members,
    mut requests: WatchRequestSender,
    shared: &WatchState,
) -> Result<(), Failure> {
    loop {
        while let Some((id, key)) = shared.open_next() {
            members.requests().inc();
            requests.watch(key, Some(options(id))).await?;
        }
        loop {
            let Some(id) = shared.table().to_cancel.pop() else {
                break;
            };
            members.requests().inc();
            requests.cancel(id).await?;
        }
        shared.news.notified().await;
    }
}

async fn receive(mut answers: WatchResponseStream, shared: &WatchState) -> Result<(), Failure> {
    while let Some(answer) = answers.message().await? {
        heard(&answer, shared);
    }
    Ok(())
}

fn heard(answer: &WatchResponse, shared: &WatchState) {
    let id = answer.watch_id();
    if answer.canceled() {
        return shared.tell(id, Stage::Broken);
    }
    if answer.created() {
        let since = answer.header().map_or(0, |header| header.revision());
        shared.tell(id, Stage::Standing { since });
    }
    // Only deletions are asked for.
    if let Some(key) = answer.events().first().and_then(Event::kv) {
        let at = key.mod_revision();
        shared.tell(id, Stage::Gone { at });
    }
}
