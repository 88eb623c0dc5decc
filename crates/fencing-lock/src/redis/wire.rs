//! One connection to a Redis.
//!
//! The caller writes its request itself, and one task reads the answers. redis-rs hands
//! each request to a task that does both, which costs more than everything else that a
//! client does for it.

use super::answer::{self, Answer};
use super::ears::Ears;
use super::link::answered;
use super::request::Request;
use crate::Env;
use crate::env::Dialed;
use crate::task::Task;
use parking_lot::Mutex;
use redis::{
    Client, ConnectionAddr, ErrorKind, RedisConnectionInfo, RedisError, RedisResult, Value,
};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, ReadHalf, WriteHalf, split};
use tokio::sync::oneshot;

/// What a server that reads nothing can make us hold.
const UNSENT_BYTES_MAX: usize = 16 << 20;
const READ_BYTES: usize = 4096;
/// The most requests that are not answered yet, given up or not.
const ASKED_MAX: usize = 1 << 16;

/// A connection that closes when this is dropped.
pub(super) struct Wire {
    requests: Arc<Mutex<Requests>>,
    _reading: Task,
}

/// Everything about requests that were not answered yet.
struct Requests {
    stream: WriteHalf<Dialed>,
    /// The bytes that the stream did not accept at once. The reading task writes them.
    unsent: Vec<u8>,
    /// In the order of the requests, which is that of the answers.
    asked: VecDeque<oneshot::Sender<RedisResult<Value>>>,
    reading: Waker,
    /// Present if the connection is over.
    over: Option<RedisError>,
}

impl Wire {
    /// Connects and authenticates. `ears` hears what the server sends unasked.
    pub(super) async fn open(env: &Env, client: &Client, ears: Option<Ears>) -> RedisResult<Wire> {
        let info = client.get_connection_info();
        let stream = match info.addr() {
            ConnectionAddr::Tcp(host, port) => env.dial(host, *port).await?,
            ConnectionAddr::Unix(path) => env.dial_socket(path).await?,
            _ => return Err(io::Error::from(io::ErrorKind::Unsupported).into()),
        };
        let (read, write) = split(stream);
        let requests = Arc::new(Mutex::new(Requests {
            stream: write,
            unsent: Vec::new(),
            asked: VecDeque::new(),
            reading: Waker::noop().clone(),
            over: None,
        }));
        let reading = env.spawn(Reading::of(read, requests.clone(), ears));
        let wire = Wire {
            requests,
            _reading: reading,
        };
        wire.greet(info.redis_settings()).await?;
        Ok(wire)
    }

    async fn greet(&self, settings: &RedisConnectionInfo) -> RedisResult<()> {
        let (user, password) = (settings.username(), settings.password());
        if settings.protocol().supports_resp3() {
            let mut words = vec!["HELLO", "3"];
            if let Some(password) = password {
                words.extend(["AUTH", user.unwrap_or("default"), password]);
            }
            self.ask(&Request::of(&words)).await?;
        } else if let Some(password) = password {
            let words: Vec<&str> = ["AUTH"].into_iter().chain(user).chain([password]).collect();
            self.ask(&Request::of(&words)).await?;
        }
        if settings.db() != 0 {
            let db = settings.db().to_string();
            self.ask(&Request::of(&["SELECT", &db])).await?;
        }
        // A server that is frozen accepts connections too. Old ones do not know this.
        let name = Request::of(&["CLIENT", "SETINFO", "LIB-NAME", "fencing-lock"]);
        match self.ask(&name).await {
            Err(error) if !answered(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Sends a request when the future is first polled, and awaits the answer.
    /// Requests reach the server in the order in which they were sent, also if their
    /// futures are dropped.
    pub(super) async fn ask(&self, request: &Request) -> RedisResult<Value> {
        let answered = self.requests.lock().send(request.bytes())?;
        let over = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        answered.await.map_err(over)??.extract_error()
    }
}

impl Requests {
    fn send(&mut self, request: &[u8]) -> RedisResult<oneshot::Receiver<RedisResult<Value>>> {
        if let Some(error) = &self.over {
            return Err(error.clone());
        }
        if self.unsent.len() > UNSENT_BYTES_MAX || self.asked.len() >= ASKED_MAX {
            return Err(io::Error::from(io::ErrorKind::WouldBlock).into());
        }
        let mut rest = request;
        if self.unsent.is_empty() {
            // If there is no room, or an error, the reading task finds that out again.
            let mut nobody = Context::from_waker(Waker::noop());
            if let Poll::Ready(Ok(sent)) = Pin::new(&mut self.stream).poll_write(&mut nobody, rest)
            {
                rest = &rest[sent..];
                let _again = Pin::new(&mut self.stream).poll_flush(&mut nobody);
            }
        }
        if !rest.is_empty() {
            self.unsent.extend_from_slice(rest);
            self.reading.wake_by_ref();
        }
        let (answer, answered) = oneshot::channel();
        self.asked.push_back(answer);
        Ok(answered)
    }

    fn poll_unsent(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.unsent.is_empty() {
            let sent = Pin::new(&mut self.stream).poll_write(context, &self.unsent);
            match ready!(sent)? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                sent => self.unsent.drain(..sent),
            };
        }
        Pin::new(&mut self.stream).poll_flush(context)
    }
}

/// The task that reads answers and passes them on.
struct Reading {
    stream: ReadHalf<Dialed>,
    requests: Arc<Mutex<Requests>>,
    ears: Option<Ears>,
    buffer: Vec<u8>,
    filled: usize,
}

impl Reading {
    async fn of(stream: ReadHalf<Dialed>, requests: Arc<Mutex<Requests>>, ears: Option<Ears>) {
        let mut reading = Reading {
            stream,
            requests,
            ears,
            buffer: vec![0; READ_BYTES],
            filled: 0,
        };
        let Err(error) = poll_fn(|context| reading.poll(context)).await;
        let mut requests = reading.requests.lock();
        for asked in requests.asked.drain(..) {
            let _or_nobody_waits = asked.send(Err(error.clone()));
        }
        requests.over = Some(error);
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<RedisResult<Infallible>> {
        loop {
            {
                let mut requests = self.requests.lock();
                if !requests.reading.will_wake(context.waker()) {
                    requests.reading.clone_from(context.waker());
                }
                if let Poll::Ready(Err(error)) = requests.poll_unsent(context) {
                    return Poll::Ready(Err(error.into()));
                }
            }
            if self.filled == self.buffer.len() {
                self.buffer.resize(2 * self.filled, 0);
            }
            let mut room = ReadBuf::new(&mut self.buffer[self.filled..]);
            ready!(Pin::new(&mut self.stream).poll_read(context, &mut room))?;
            let count = room.filled().len();
            if count == 0 {
                let over = io::Error::from(io::ErrorKind::UnexpectedEof);
                return Poll::Ready(Err(over.into()));
            }
            self.filled += count;
            self.pass_on()?;
        }
    }

    /// Passes on every answer that is complete.
    fn pass_on(&mut self) -> RedisResult<()> {
        let mut from = 0;
        while let Some((answer, length)) = answer::read(&self.buffer[from..self.filled])? {
            from += length;
            let value = match answer {
                Answer::To(value) => value,
                Answer::Message { channel, word } => {
                    if let Some(ears) = &self.ears {
                        ears.hear(&channel, &word);
                    }
                    continue;
                }
            };
            let asked = self.requests.lock().asked.pop_front();
            let nobody = (ErrorKind::Io, "an answer to nothing");
            let _or_nobody_waits = asked.ok_or(nobody)?.send(Ok(value));
        }
        self.buffer.copy_within(from..self.filled, 0);
        self.filled -= from;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::World;
    use crate::env::ByteStream;
    use async_trait::async_trait;
    use futures_util::future::{BoxFuture, join_all};
    use std::time::SystemTime;
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, duplex};

    /// A server that answers each command with its last word, over a stream that takes a
    /// few bytes at a time. At the word `enough` it leaves.
    struct Echo;

    #[async_trait]
    impl World for Echo {
        fn wall_clock(&self) -> SystemTime {
            SystemTime::UNIX_EPOCH
        }

        fn random(&self) -> u64 {
            1
        }

        fn spawn(&self, task: BoxFuture<'static, ()>) {
            tokio::spawn(task);
        }

        async fn dial(&self, _: &str, _: u16) -> io::Result<Box<dyn ByteStream>> {
            let (here, there) = duplex(16);
            tokio::spawn(echo(BufReader::new(there).lines()));
            Ok(Box::new(here))
        }
    }

    async fn echo(mut lines: Lines<BufReader<DuplexStream>>) {
        while let Ok(Some(head)) = lines.next_line().await {
            let words: usize = head[1..].parse().unwrap();
            let mut word = String::new();
            for _ in 0..2 * words {
                word = lines.next_line().await.unwrap().unwrap();
            }
            if word == "enough" {
                return;
            }
            let answer = format!("${}\r\n{word}\r\n", word.len());
            let stream = lines.get_mut();
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    }

    #[tokio::test]
    async fn requests_that_the_stream_does_not_take_at_once_keep_their_order() {
        let client = Client::open("redis://nowhere").unwrap();
        let env = Env::of(Arc::new(Echo));
        let wire = Wire::open(&env, &client, None).await.unwrap();
        let words: Vec<String> = (0..50).map(|number| format!("{number:0>100}")).collect();
        let asked = words.iter().map(|word| {
            let (wire, request) = (&wire, Request::of(&["ECHO", word]));
            async move { wire.ask(&request).await }
        });
        let heard = join_all(asked).await;
        for (word, answer) in words.iter().zip(heard) {
            assert_eq!(answer.unwrap(), Value::BulkString(word.clone().into()));
        }
        let last = Request::of(&["ECHO", "enough"]);
        for _ in 0..2 {
            let error = wire.ask(&last).await.unwrap_err();
            assert!(!answered(&error), "{error}");
        }
    }
}
