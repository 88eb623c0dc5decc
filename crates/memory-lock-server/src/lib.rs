//! A lock server in memory, for simulations: leases that end by a clock which somebody else plays,
//! a line of waiters for each lock, and tokens from one counter. It keeps nothing: with its process,
//! its locks and its counter are gone.
//!
//! ```
//! # use memory_lock_server::{Answer, LockServer};
//! # use std::time::Duration;
//! let server = LockServer::default();
//! server.start(|| Duration::from_secs(1_700_000_000));
//! let granted = server.ask("acquire a 2000 try account-42");
//! assert_eq!(granted, Answer::Granted { token: 1 });
//! let held = server.ask("acquire b 2000 try account-42");
//! assert_eq!(held, Answer::Held { left: Duration::from_secs(2) });
//! ```
//!
//! It speaks lines of text, one request after another on a connection; [`Request`] and [`Answer`]
//! are these lines.

mod protocol;
mod state;

pub use protocol::{Answer, NotALine, Request};

use parking_lot::Mutex;
use state::{Record, Reply, Standing, State};
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Notify;
use tokio::time::sleep;

/// A server. Clones are the same server.
#[derive(Clone)]
pub struct LockServer {
    state: Arc<Mutex<State>>,
    record: Arc<Mutex<Record>>,
    /// Rings when a lease may have begun.
    asked: Arc<Notify>,
}

/// A lock that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub kind: EventKind,
    pub key: String,
    pub owner: String,
    pub token: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    Granted,
    Renewed,
    Released,
    Expired,
}

/// A clock that jumps is noticed within this time.
const EXPIRE_EVERY: Duration = Duration::from_millis(100);
/// The longest line that is read.
const LINE_MAX: u64 = 1 << 20;
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Returns how long a server lets a request wait: whoever gets its answer has at least half of its
/// TTL left, and has to ask again otherwise.
pub fn longest_wait(ttl: Duration) -> Duration {
    (ttl / 2).min(LONGEST_WAIT)
}

impl Default for LockServer {
    fn default() -> LockServer {
        let record: Record = Box::new(|_| {});
        LockServer {
            state: Arc::new(Mutex::new(State::new(Box::new(|| Duration::ZERO)))),
            record: Arc::new(Mutex::new(record)),
            asked: Arc::default(),
        }
    }
}

impl LockServer {
    /// Ends the process, if there is one, and starts another, which knows nothing of it. `clock`
    /// is its wall clock, as the time since 1970.
    pub fn start(&self, clock: impl Fn() -> Duration + Send + Sync + 'static) {
        *self.state.lock() = State::new(Box::new(clock));
    }

    /// Reports every change of a lock from now on.
    pub fn watch(&self, record: impl Fn(Event) + Send + Sync + 'static) {
        *self.record.lock() = Box::new(record);
    }

    /// Answers one line. Nobody waits: one who has to is told that the lock is held.
    pub fn ask(&self, line: &str) -> Answer {
        match self.reply(line) {
            Reply::Now(answer) => answer,
            Reply::Later(standing) => self.state.lock().waits_on(standing),
        }
    }

    /// Serves one connection until the client closes it.
    pub async fn serve<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: S) -> io::Result<()> {
        let mut stream = BufReader::new(stream);
        loop {
            let mut line = String::new();
            let read = (&mut stream).take(LINE_MAX).read_line(&mut line).await?;
            if read == 0 {
                return Ok(());
            }
            let answer = match self.reply(line.trim_end()) {
                Reply::Now(answer) => answer,
                Reply::Later(standing) => match self.wait(standing, &mut stream).await? {
                    Some(answer) => answer,
                    None => return Ok(()),
                },
            };
            stream.write_all(format!("{answer}\n").as_bytes()).await?;
            stream.flush().await?;
        }
    }

    /// Ends leases that are over, for as long as this is polled.
    pub async fn expire_actively(&self) -> Infallible {
        loop {
            let next = self.state.lock().expire(&self.record.lock());
            match next {
                Some(left) => sleep(left.min(EXPIRE_EVERY)).await,
                None => self.asked.notified().await,
            }
        }
    }

    fn reply(&self, line: &str) -> Reply {
        let Ok(request) = line.parse() else {
            return Reply::Now(Answer::NotUnderstood);
        };
        let reply = self.state.lock().reply(request, &self.record.lock());
        self.asked.notify_one();
        reply
    }

    /// Waits for the lock, but no longer than a request may; returns None if the client is gone,
    /// or has asked again elsewhere.
    async fn wait<S: AsyncRead + Unpin>(
        &self,
        mut standing: Standing,
        stream: &mut BufReader<S>,
    ) -> io::Result<Option<Answer>> {
        tokio::select! {
            biased;
            token = &mut standing.word => {
                return Ok(token.ok().map(|token| Answer::Granted { token }));
            }
            // Nobody asks anything before the answer has come.
            ended = stream.fill_buf() => return ended.map(|_| None),
            () = sleep(longest_wait(standing.ttl)) => {}
        }
        Ok(Some(self.state.lock().waits_on(standing)))
    }
}

impl Event {
    fn of(kind: EventKind, key: &str, (owner, token): (&str, u64)) -> Event {
        Event {
            kind,
            key: key.to_owned(),
            owner: owner.to_owned(),
            token,
        }
    }
}
