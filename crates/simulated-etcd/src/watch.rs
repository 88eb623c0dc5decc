//! Streams of watches: each goes through the changes of the store at its own pace.

use crate::Etcd;
use crate::api::*;
use crate::grpc::{Answers, Requests};
use crate::state::State;
use crate::status::Status;
use crate::store::{Batch, Key, span};
use prost::Message;
use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};
use std::pin::pin;

struct Watch {
    keys: (Bound<Key>, Bound<Key>),
    filters: Vec<i32>,
    wants_previous: bool,
    /// The first revision that it has not seen.
    next: i64,
}

/// The watches of one stream.
#[derive(Default)]
struct Watches {
    all: BTreeMap<i64, Watch>,
    /// No id is given twice, unless a client asks for it.
    next_id: i64,
}

/// What is meant by no watch.
const NO_WATCH: i64 = -1;

pub async fn serve(
    etcd: &Etcd,
    requests: &mut Requests,
    answers: &mut Answers,
    needs_leader: bool,
) -> Result<(), Status> {
    let mut watches = Watches::default();
    let mut leaderless = pin!(etcd.leaderless(needs_leader));
    loop {
        let rings = etcd.bell.notified();
        for response in etcd.change(|state| news(state, &mut watches)) {
            answers.send(&response.encode_to_vec())?;
        }
        let asked: Option<WatchRequest> = tokio::select! {
            biased;
            asked = requests.next() => asked?,
            () = rings => continue,
            status = &mut leaderless => return Err(status),
        };
        let Some(WatchRequest { asked }) = asked else {
            return Ok(());
        };
        let responses = etcd.change(|state| {
            // An answer tells a revision, so what happened up to it comes first.
            let mut responses = news(state, &mut watches);
            responses.extend(asked.and_then(|asked| answer(state, &mut watches, asked)));
            responses
        });
        for response in responses {
            answers.send(&response.encode_to_vec())?;
        }
    }
}

fn answer(state: &mut State, watches: &mut Watches, asked: WatchAsked) -> Option<WatchResponse> {
    let response = WatchResponse {
        header: state.header(),
        ..WatchResponse::default()
    };
    Some(match asked {
        WatchAsked::Create(create) => WatchResponse {
            created: true,
            ..begin(watches, create, state.store.revision, response)
        },
        WatchAsked::Cancel(WatchCancelRequest { watch_id }) => {
            watches.all.remove(&watch_id)?;
            WatchResponse {
                watch_id,
                canceled: true,
                ..response
            }
        }
        WatchAsked::Progress(_) => WatchResponse {
            watch_id: NO_WATCH,
            ..response
        },
    })
}

fn begin(
    watches: &mut Watches,
    create: WatchCreateRequest,
    revision: i64,
    response: WatchResponse,
) -> WatchResponse {
    let refused = |reason: &str| WatchResponse {
        watch_id: NO_WATCH,
        canceled: true,
        cancel_reason: reason.to_owned(),
        ..response.clone()
    };
    let is_taken = |id: &i64| watches.all.contains_key(id);
    if create.watch_id != 0 && is_taken(&create.watch_id) {
        return refused("mvcc: duplicate watch ID provided on the WatchStream");
    }
    // No key is all keys from the first on.
    let key = if create.key.is_empty() {
        vec![0]
    } else {
        create.key
    };
    if create.range_end.as_slice() > [0].as_slice() && create.range_end <= key {
        return refused("mvcc: watcher range is empty");
    }
    let mut watch_id = create.watch_id;
    if watch_id == 0 {
        let free = (watches.next_id..).find(|id| !is_taken(id));
        watch_id = free.unwrap_or_default();
        watches.next_id = watch_id + 1;
    }
    let watch = Watch {
        keys: span(&key, &create.range_end),
        filters: create.filters,
        wants_previous: create.prev_kv,
        next: match create.start_revision {
            0 => revision + 1,
            start => start,
        },
    };
    watches.all.insert(watch_id, watch);
    WatchResponse {
        watch_id,
        ..response
    }
}

/// Returns what the watches have not seen yet, in the order in which it happened.
fn news(state: &mut State, watches: &mut Watches) -> Vec<WatchResponse> {
    let header = state.header().unwrap_or_default();
    let Some(next) = watches.all.values().map(|watch| watch.next).min() else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for batch in state.store.changes_since(next) {
        for (id, watch) in watches.all.iter_mut() {
            let events = watch.see(batch);
            if events.is_empty() {
                continue;
            }
            let header = ResponseHeader {
                revision: batch.revision,
                ..header.clone()
            };
            all.push(WatchResponse {
                header: Some(header),
                watch_id: *id,
                events,
                ..WatchResponse::default()
            });
        }
    }
    all
}

impl Watch {
    fn see(&mut self, batch: &Batch) -> Vec<Event> {
        if batch.revision < self.next {
            return Vec::new();
        }
        self.next = batch.revision + 1;
        let seen = batch.events.iter().filter(|event| {
            let is_filtered = match event.kind {
                DELETE => self.filters.contains(&NO_DELETE),
                _ => self.filters.contains(&NO_PUT),
            };
            let kv = event.kv.as_ref();
            !is_filtered && kv.is_some_and(|kv| self.keys.contains(&kv.key))
        });
        seen.cloned()
            .map(|event| Event {
                prev_kv: event.prev_kv.filter(|_| self.wants_previous),
                ..event
            })
            .collect()
    }
}
