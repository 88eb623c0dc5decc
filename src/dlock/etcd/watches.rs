use super::failure::Failure;
use super::members::{Members, Wire};
use etcd_client::{
    Event, WatchFilterType, WatchOptions, WatchRequestSender, WatchResponse, WatchResponseStream,
};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

/// Waits for keys to be deleted: one stream to the preferred member for all
/// who wait in this process.
///
/// Each watch is for one key, and begins with the state in which the server got
/// to know of it. A watch that has to catch up first is served by a loop of the
/// server that comes round every 100 ms; this one is served at once, and who
/// waits looks for itself what happened before.
pub(super) struct Watches {
    shared: Arc<Shared>,
    _stream: AbortOnDropHandle<()>,
    _probe: AbortOnDropHandle<()>,
}

/// How far a watch has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Stage {
    Asked,
    /// Deletions after this revision are told.
    Standing {
        since: i64,
    },
    /// Deleted at this revision.
    Gone {
        at: i64,
    },
    /// Nothing will be told any more: look, and watch again.
    Broken,
}

/// One who waits; dropped, the watch ends.
pub(super) struct Watching {
    shared: Arc<Shared>,
    id: i64,
    stage: watch::Receiver<Stage>,
}

#[derive(Default)]
struct Shared {
    table: Mutex<Table>,
    /// There is something to tell the server.
    news: Notify,
}

#[derive(Default)]
struct Table {
    last_id: i64,
    /// Those who wait, by the id of their watch.
    waiting: HashMap<i64, Waiter>,
    to_open: VecDeque<i64>,
    to_cancel: Vec<i64>,
}

struct Waiter {
    key: Vec<u8>,
    stage: watch::Sender<Stage>,
}

/// While anybody waits, the member is asked this often whether it still has a
/// leader: a watch on a member that is frozen or cut off is silent.
const PROBE_EVERY: Duration = Duration::from_secs(1);
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(50);

impl Watches {
    pub(super) fn start(members: Arc<Members>) -> Watches {
        let shared = Arc::new(Shared::default());
        Watches {
            _stream: AbortOnDropHandle::new(tokio::spawn(serve_all(
                members.clone(),
                shared.clone(),
            ))),
            _probe: AbortOnDropHandle::new(tokio::spawn(probe(members, shared.clone()))),
            shared,
        }
    }

    /// Waits for this key to be deleted.
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
    /// The next stage that was not told yet.
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
            // The server was never told of it.
            table.to_open.remove(index);
        } else if was_waiting {
            table.to_cancel.push(self.id);
            drop(table);
            self.shared.news.notify_one();
        }
    }
}

impl Shared {
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

    /// Those whom the stream that ended was to tell look for themselves.
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

/// One stream after the other, for as long as anybody waits.
async fn serve_all(members: Arc<Members>, shared: Arc<Shared>) {
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

/// Returns when another member should be asked.
async fn serve(
    members: &Members,
    shared: &Shared,
    (id, key): (i64, Vec<u8>),
) -> Result<(), Failure> {
    let (index, wire, mut changes) = members.preferred().await?;
    members.requests().inc();
    let opened = timeout(members.request_timeout(), open(wire, id, key)).await;
    let opened = opened.unwrap_or_else(|_| Err(Failure::too_slow(members.request_timeout())));
    let (requests, answers) = opened.inspect_err(|_| members.prefer_after(index))?;
    // Both at once: a server whose answers are not read stops reading requests.
    tokio::select! {
        ended = send(members, requests, shared) => ended?,
        ended = receive(answers, shared) => {
            members.prefer_after(index);
            ended?;
        }
        _ = changes.changed() => {}
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
    shared: &Shared,
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

async fn receive(mut answers: WatchResponseStream, shared: &Shared) -> Result<(), Failure> {
    while let Some(answer) = answers.message().await? {
        heard(&answer, shared);
    }
    Ok(())
}

fn heard(answer: &WatchResponse, shared: &Shared) {
    let id = answer.watch_id();
    if answer.canceled() {
        return shared.tell(id, Stage::Broken);
    }
    if answer.created() {
        let since = answer.header().map_or(0, |header| header.revision());
        shared.tell(id, Stage::Standing { since });
    }
    // Nothing but deletions is asked for.
    if let Some(key) = answer.events().first().and_then(Event::kv) {
        let at = key.mod_revision();
        shared.tell(id, Stage::Gone { at });
    }
}

/// Makes the members choose another one where the preferred one is silent.
async fn probe(members: Arc<Members>, shared: Arc<Shared>) {
    loop {
        sleep(PROBE_EVERY).await;
        if shared.table().waiting.is_empty() {
            continue;
        }
        // Any read will do that a majority has to confirm.
        let _told_by_the_members = members
            .ask(|wire| {
                let mut kv = wire.kv.clone();
                async move { kv.get("/", None).await }
            })
            .await;
    }
}
