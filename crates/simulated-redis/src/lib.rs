//! A Redis in memory, for simulations: it runs real Lua scripts on the commands that locks use,
//! and takes its time from a clock that somebody else plays.
//!
//! ```
//! # use simulated_redis::{Redis, Reply};
//! # use std::time::Duration;
//! let redis = Redis::new(|| Duration::from_secs(1_700_000_000));
//! let mut session = redis.session();
//! assert_eq!(session.run(&["SET", "a", "1", "NX", "PX", "100"]), Reply::Simple("OK".to_owned()));
//! assert_eq!(session.run(&["EVAL", "return redis.call('PTTL', KEYS[1])", "1", "a"]), Reply::Int(100));
//! ```
//!
//! It answers as a Redis 7.0 does. A test of the suite sends the same random commands and the
//! same lock workloads to this one and to a real one, and compares the answers and the messages.
//!
//! What is missing answers as an unknown command does: sets, sorted sets, streams, transactions,
//! clusters and passwords. A replica follows its primary in frames of this crate, and goes on
//! answering keys whose time is over until its primary deletes them. Fields of a hash come in the order of their names. A
//! script has no `cjson`, `cmsgpack`, `struct` and `bit`, and nothing ends one that loops.

mod client;
mod commands;
mod connection;
mod glob;
mod keyspace;
mod notify;
mod pubsub;
mod replication;
mod reply;
mod request;
mod script;
mod stack;
mod state;

pub use reply::{Protocol, Reply};

use client::Client;
use keyspace::{Keyspace, Value};
use parking_lot::Mutex;
use state::State;
use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::sleep;

/// A server. Clones are the same server.
#[derive(Clone)]
pub struct Redis {
    state: Arc<Mutex<State>>,
}

/// Whether a server finds its keys again after a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// As with an append-only file that is synced before each answer.
    Kept,
    Lost,
}

/// A key that changed, as a keyspace notification reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub db: usize,
    pub key: Vec<u8>,
    /// Such as `set`, `del` or `expired`.
    pub event: Cow<'static, str>,
}

/// What a process of a server has of its own.
pub struct Start {
    /// Its wall clock, as the time since 1970: a key ends when this clock says so.
    pub clock: Box<dyn Fn() -> Duration + Send + Sync>,
    /// Its name, which no other process has.
    pub run_id: String,
    /// Whether it finds the keys of the process before it.
    pub data: Data,
}

/// The keys of a server between two commands.
pub struct Look<'a>(&'a [Keyspace]);

impl Look<'_> {
    /// Returns the text under a key; `None` if there is none, or something else.
    pub fn text(&self, db: usize, key: &[u8]) -> Option<&[u8]> {
        match self.0.get(db)?.get(key)? {
            Value::Text(text) => Some(text),
            Value::Hash(_) | Value::List(_) => None,
        }
    }
}

/// How often a server looks for keys whose time is over.
const EXPIRE_EVERY: Duration = Duration::from_millis(100);

impl Redis {
    /// Makes an empty server. `clock` is its wall clock, as the time since 1970: a key ends when
    /// this clock says so.
    pub fn new(clock: impl Fn() -> Duration + Send + Sync + 'static) -> Redis {
        Redis {
            state: Arc::new(Mutex::new(State::new(Box::new(clock)))),
        }
    }

    /// Ends the process, if there is one, and starts another: connections, scripts, subscriptions
    /// and settings are gone.
    pub fn start(&self, start: Start) {
        let mut state = self.state.lock();
        state.restart(start.data);
        state.begin(start.clock, start.run_id);
    }

    /// Opens a connection without bytes.
    pub fn session(&self) -> Session {
        let client = self.state.lock().connect();
        Session {
            redis: self.clone(),
            client,
        }
    }

    /// Serves one connection until the client closes it, or the server restarts.
    pub fn serve<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
    ) -> impl Future<Output = std::io::Result<()>> + use<S> {
        connection::serve(self.session(), stream)
    }

    /// Removes the keys whose time is over, as a server does beside its commands. Returns how
    /// long it takes by its clock until the next one ends.
    pub fn expire(&self) -> Option<Duration> {
        self.state.lock().expire()
    }

    /// Removes the keys whose time is over ten times a second, for as long as this is polled.
    pub async fn expire_actively(&self) -> Infallible {
        let mortal = self.state.lock().mortal.clone();
        loop {
            match self.expire() {
                Some(_) => sleep(EXPIRE_EVERY).await,
                None => mortal.notified().await,
            }
        }
    }

    /// Does the same to a process that has everything else of the one before.
    pub fn restart(&self, data: Data) {
        self.state.lock().restart(data);
    }

    /// Reports the changes of every command to this function, before the command is answered,
    /// with a look at the keys. It must not use the server.
    pub fn watch(&self, watcher: impl FnMut(&[Change], &Look<'_>) + Send + 'static) {
        self.state.lock().watch(Box::new(watcher));
    }
}

/// A connection whose commands are called and not sent.
pub struct Session {
    redis: Redis,
    client: Client,
}

impl Session {
    /// Carries out a command. Most have one answer; a command for messages has one for each
    /// channel, of which this returns the last.
    pub fn run(&mut self, words: &[impl AsRef<[u8]>]) -> Reply {
        let words: Vec<Vec<u8>> = words.iter().map(|word| word.as_ref().to_vec()).collect();
        let mut replies = self.run_all(&words);
        replies.pop().unwrap_or(Reply::Nil)
    }

    pub(crate) fn run_all(&mut self, words: &[Vec<u8>]) -> Vec<Reply> {
        self.redis.state.lock().run(&mut self.client, words)
    }

    /// Takes the messages that came in since the last call.
    pub fn messages(&mut self) -> Vec<Reply> {
        self.client.outbox.take()
    }

    pub fn protocol(&self) -> Protocol {
        self.client.protocol
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.redis.state.lock().disconnect(&self.client);
    }
}
