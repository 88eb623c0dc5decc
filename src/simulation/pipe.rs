//! A connection in memory, as TCP is one: bytes stay in their order and take a while, what was
//! sent arrives although its sender has ended, and a reader that is slow slows the writer down.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};
use toxiproxy_server::server::streams::{Closable, Closer};

/// What is under way in one direction.
const MOST_BYTES: usize = 1 << 16;

/// Returns how long some bytes take.
pub type Ways = Arc<dyn Fn() -> Duration + Send + Sync>;

/// Makes a connection; returns its two ends.
pub fn pipe(ways: Ways) -> [End; 2] {
    let pipe = Arc::new(Mutex::new(Pipe {
        flows: Default::default(),
        is_reset: false,
        is_held: false,
        ways,
    }));
    [0, 1].map(|side| End {
        pipe: pipe.clone(),
        side,
        alarm: None,
    })
}

/// One end of a connection.
pub struct End {
    pipe: Arc<Mutex<Pipe>>,
    side: usize,
    alarm: Option<Pin<Box<Sleep>>>,
}

struct Pipe {
    /// The bytes from each side to the other.
    flows: [Flow; 2],
    is_reset: bool,
    /// Nothing arrives, and nobody is told.
    is_held: bool,
    ways: Ways,
}

#[derive(Default)]
struct Flow {
    chunks: VecDeque<Chunk>,
    bytes: usize,
    last_due: Option<Instant>,
    /// When the reader sees the end.
    ends_at: Option<Instant>,
    /// The reader is gone.
    is_refused: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

struct Chunk {
    due: Instant,
    bytes: Vec<u8>,
    read: usize,
}

impl Flow {
    fn wake_reader(&mut self) {
        if let Some(waker) = self.reader.take() {
            waker.wake();
        }
    }

    fn wake_writer(&mut self) {
        if let Some(waker) = self.writer.take() {
            waker.wake();
        }
    }

    /// Moves everything that has arrived to where there is room.
    fn read(&mut self, room: &mut ReadBuf<'_>, now: Instant) -> usize {
        let before = room.filled().len();
        while let Some(chunk) = self.chunks.front_mut() {
            if chunk.due > now || room.remaining() == 0 {
                break;
            }
            let count = room.remaining().min(chunk.bytes.len() - chunk.read);
            room.put_slice(&chunk.bytes[chunk.read..][..count]);
            chunk.read += count;
            if chunk.read == chunk.bytes.len() {
                self.chunks.pop_front();
            }
        }
        let count = room.filled().len() - before;
        self.bytes -= count;
        count
    }

    fn end(&mut self, at: Instant) {
        if self.ends_at.is_none() {
            self.ends_at = Some(self.last_due.map_or(at, |last| last.max(at)));
            self.wake_reader();
        }
    }
}

impl Pipe {
    fn arrival(&self, flow: usize) -> Instant {
        let at = Instant::now() + (self.ways)();
        self.flows[flow].last_due.map_or(at, |last| last.max(at))
    }

    fn wake_all(&mut self) {
        for flow in &mut self.flows {
            flow.wake_reader();
            flow.wake_writer();
        }
    }
}

impl AsyncRead for End {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let End { pipe, side, alarm } = &mut *self;
        loop {
            let mut pipe = pipe.lock();
            if pipe.is_reset {
                return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
            }
            let is_held = pipe.is_held;
            let flow = &mut pipe.flows[1 - *side];
            let now = Instant::now();
            if flow.is_refused {
                return Poll::Ready(Ok(()));
            }
            if !is_held && flow.read(room, now) > 0 {
                flow.wake_writer();
                return Poll::Ready(Ok(()));
            }
            let due = flow.chunks.front().map(|chunk| chunk.due);
            let due = due.or(flow.ends_at).filter(|_| !is_held);
            match due {
                // The end, because nothing was read.
                Some(due) if due <= now => return Poll::Ready(Ok(())),
                Some(due) => {
                    flow.reader = Some(context.waker().clone());
                    drop(pipe);
                    let alarm = alarm.get_or_insert_with(|| Box::pin(sleep_until(due)));
                    if alarm.deadline() != due {
                        alarm.as_mut().reset(due);
                    }
                    if alarm.as_mut().poll(context).is_pending() {
                        return Poll::Pending;
                    }
                }
                None => {
                    flow.reader = Some(context.waker().clone());
                    return Poll::Pending;
                }
            }
        }
    }
}

impl AsyncWrite for End {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut pipe = self.pipe.lock();
        if pipe.is_reset {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        let due = pipe.arrival(self.side);
        let flow = &mut pipe.flows[self.side];
        if flow.is_refused || flow.ends_at.is_some() {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let count = bytes.len().min(MOST_BYTES - flow.bytes);
        if count == 0 && !bytes.is_empty() {
            flow.writer = Some(context.waker().clone());
            return Poll::Pending;
        }
        flow.bytes += count;
        flow.last_due = Some(due);
        flow.chunks.push_back(Chunk {
            due,
            bytes: bytes[..count].to_vec(),
            read: 0,
        });
        // Whoever waits for an earlier chunk looks again by itself.
        if flow.chunks.len() == 1 {
            flow.wake_reader();
        }
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut pipe = self.pipe.lock();
        let at = pipe.arrival(self.side);
        pipe.flows[self.side].end(at);
        Poll::Ready(Ok(()))
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.closer().close();
    }
}

impl Closable for End {
    type Closer = EndCloser;

    fn closer(&self) -> EndCloser {
        EndCloser {
            pipe: self.pipe.clone(),
            side: self.side,
        }
    }
}

pub struct EndCloser {
    pipe: Arc<Mutex<Pipe>>,
    side: usize,
}

impl Closer for EndCloser {
    fn close(&self) {
        let mut pipe = self.pipe.lock();
        let at = pipe.arrival(self.side);
        pipe.flows[self.side].end(at);
        let incoming = &mut pipe.flows[1 - self.side];
        incoming.is_refused = true;
        incoming.wake_reader();
        incoming.wake_writer();
    }

    fn reset(&self) {
        let mut pipe = self.pipe.lock();
        pipe.is_reset = true;
        pipe.wake_all();
    }
}

/// A connection that somebody else holds the ends of.
pub struct Remembered(Weak<Mutex<Pipe>>);

impl Remembered {
    pub fn of(end: &End) -> Remembered {
        Remembered(Arc::downgrade(&end.pipe))
    }

    pub fn is_over(&self) -> bool {
        self.0.strong_count() == 0
    }

    /// Holds everything that is under way, or lets it go on.
    pub fn hold(&self, is_held: bool) {
        if let Some(pipe) = self.0.upgrade() {
            let mut pipe = pipe.lock();
            pipe.is_held = is_held;
            pipe.wake_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const WAY: Duration = Duration::from_millis(10);

    fn ends() -> [End; 2] {
        pipe(Arc::new(|| WAY))
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_sent_arrives_later_although_its_sender_has_ended() {
        let [mut near, mut far] = ends();
        let began_at = Instant::now();
        near.write_all(b"hello").await.unwrap();
        drop(near);
        let mut text = String::new();
        far.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "hello");
        assert!(began_at.elapsed() >= WAY);
        let refused = far.write_all(b"nobody is there").await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::BrokenPipe);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_is_slow_slows_the_writer_down() {
        let [mut near, mut far] = ends();
        let all = vec![7; MOST_BYTES + 1];
        let written = tokio::time::timeout(WAY * 100, near.write_all(&all)).await;
        assert!(written.is_err(), "there is no room for the last byte");
        let mut read = vec![0; MOST_BYTES];
        far.read_exact(&mut read).await.unwrap();
        near.write_all(&all[..1]).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_held_arrives_when_it_is_let_go_and_a_reset_is_seen_by_both() {
        let [mut near, mut far] = ends();
        let remembered = Remembered::of(&near);
        remembered.hold(true);
        near.write_all(b"x").await.unwrap();
        let held = tokio::time::timeout(WAY * 100, far.read_u8()).await;
        assert!(held.is_err());
        remembered.hold(false);
        assert_eq!(far.read_u8().await.unwrap(), b'x');
        near.closer().reset();
        for end in [&mut near, &mut far] {
            let error = end.read_u8().await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        }
        drop((near, far));
        assert!(remembered.is_over());
    }
}
