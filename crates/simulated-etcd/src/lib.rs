//! An etcd cluster in memory, for simulations: members with a small Raft between them, keys with
//! revisions, leases, watches, transactions and etcd's own locks. Each speaks gRPC, as real clients
//! do, over connections that somebody else makes, and takes its time from clocks that somebody
//! else plays.
//!
//! ```
//! # use simulated_etcd::{Etcd, Peer, Start};
//! # use std::time::Duration;
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! let only = Peer { name: "etcd".to_owned(), host: "etcd".to_owned(), port: 2380 };
//! let etcd = Etcd::new("etcd", &[only]);
//! etcd.start(Start {
//!     wall_clock: Box::new(|| Duration::from_secs(1_700_000_000)),
//!     monotonic: Box::new(|| Duration::ZERO),
//!     seed: 1,
//! });
//! let nobody = |_: String, _| async { Err::<tokio::io::DuplexStream, _>(std::io::ErrorKind::NotFound.into()) };
//! tokio::select! {
//!     () = etcd.ready() => {}
//!     never = etcd.run(nobody) => match never {},
//! }
//! # }
//! ```
//!
//! It answers as an etcd 3.5 does. A test of the suite sends the same random requests to this one
//! and to a real one, and compares the answers and the events.
//!
//! Compaction, users, changes of the members, transactions in others, puts that keep the value or
//! the lease are answered as unimplemented. A watch ignores `progress_notify` and `fragment`. A log is never cut short. A read that has to be
//! confirmed is an entry of the log. A member that comes back without its disk begins as if it were new,
//! where a real one asks the others first, and ends.

mod api;
mod calls;
mod grpc;
mod http1;
mod leases;
mod links;
mod lock;
mod peer;
mod raft;
mod requests;
mod serve;
mod state;
mod status;
mod store;
mod txn;
mod watch;

use api::{DELETE, Event};
use futures_util::future::join_all;
use parking_lot::Mutex;
use state::State;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use store::Store;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::time::sleep;

/// A member. Clones are the same member.
#[derive(Clone)]
pub struct Etcd {
    state: Arc<Mutex<State>>,
    /// Rings when something was carried out, and when the leader is another.
    bell: Arc<Notify>,
    /// The others, with their numbers.
    others: Arc<[(u64, Peer)]>,
}

/// A member as the others reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    pub name: String,
    pub host: String,
    pub port: u16,
}

/// What a process of a member has of its own.
pub struct Start {
    /// Its wall clock, as the time since 1970; only the date of an answer comes from it.
    pub wall_clock: Box<dyn Fn() -> Duration + Send + Sync>,
    /// The clock by which leases end.
    pub monotonic: Box<dyn Fn() -> Duration + Send + Sync>,
    pub seed: u64,
}

/// A key that changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    Put {
        key: &'a [u8],
        value: &'a [u8],
        create_revision: i64,
        lease: i64,
    },
    Deleted {
        key: &'a [u8],
    },
}

impl Change<'_> {
    fn of(event: &Event) -> Option<Change<'_>> {
        let kv = event.kv.as_ref()?;
        let key = kv.key.as_slice();
        Some(match event.kind {
            DELETE => Change::Deleted { key },
            _ => Change::Put {
                key,
                value: &kv.value,
                create_revision: kv.create_revision,
                lease: kv.lease,
            },
        })
    }
}

/// A member between two commands.
pub struct Look<'a>(&'a Store);

impl Look<'_> {
    pub fn has_lease(&self, lease: i64) -> bool {
        self.0.leases.contains_key(&lease)
    }
}

const TICK: Duration = Duration::from_millis(100);
/// How often a leader looks for leases that are over.
const EXPIRE_EVERY: Duration = Duration::from_millis(500);

impl Etcd {
    /// Makes a member with nothing on its disk. The cluster has to contain it.
    pub fn new(name: &str, cluster: &[Peer]) -> Etcd {
        let mut all: Vec<Peer> = cluster.to_vec();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        let own = all.iter().position(|peer| peer.name == name);
        let own = own.map_or(0, |at| at as u64 + 1);
        let others: Vec<(u64, Peer)> = (1..).zip(all).filter(|(id, _)| *id != own).collect();
        let ids = others.iter().map(|(id, _)| *id);
        Etcd {
            state: Arc::new(Mutex::new(State::new(own, ids))),
            bell: Arc::default(),
            others: others.into(),
        }
    }

    /// Returns whether no process was begun yet, so nothing is on disk.
    pub fn is_new(&self) -> bool {
        self.state.lock().is_new()
    }

    /// Begins a process with what is on disk. What the process before it still does has to be
    /// dropped.
    pub fn start(&self, start: Start) {
        self.state.lock().start(start);
    }

    /// Does what a member does beside its clients, for as long as this is polled: elections,
    /// heartbeats, the end of leases. `dial` connects to a host and a port.
    pub async fn run<S, F>(&self, dial: impl Fn(String, u16) -> F) -> Infallible
    where
        S: AsyncRead + AsyncWrite + Unpin,
        F: Future<Output = io::Result<S>>,
    {
        let links = self.others.iter();
        let links = links.map(|(id, peer)| links::keep(self, *id, peer, &dial));
        let ticks = self.every(TICK, State::tick);
        let ends = self.every(EXPIRE_EVERY, State::expire);
        let (never, _, _) = tokio::join!(ticks, ends, join_all(links));
        never
    }

    async fn every(&self, pause: Duration, act: fn(&mut State)) -> Infallible {
        loop {
            sleep(pause).await;
            self.change(act);
        }
    }

    /// Serves a connection, of a client or of another member, until it ends.
    pub fn serve<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
    ) -> impl Future<Output = io::Result<()>> + use<S> {
        serve::serve(self.clone(), stream)
    }

    /// Waits until the cluster carries out what this member asks for.
    pub async fn ready(&self) {
        while self.confirm().await.is_err() {}
    }

    /// Returns whether it leads, as far as it knows.
    pub fn leads(&self) -> bool {
        let raft = &self.state.lock().raft;
        raft.leader == Some(raft.id)
    }

    /// Reports the changes of each revision to this function, when this member learns of them. It
    /// must not use the member.
    pub fn watch(&self, watcher: impl FnMut(&[Change<'_>], &Look<'_>) + Send + 'static) {
        self.state.lock().watcher = Some(Box::new(watcher));
    }

    /// Changes something, and rings if anybody may have waited for that.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock();
        let before = state.stamp();
        let changed = change(&mut state);
        let is_news = state.stamp() != before;
        drop(state);
        if is_news {
            self.bell.notify_waiters();
        }
        changed
    }
}
