//! One direction of one connection: it reads, passes everything through the chain of
//! toxics, and writes. Without a toxic, it only copies.

use super::alarm::Alarm;
use super::announced::Follower;
use super::chain::{Chain, Chunk, Dose, Item, Turn};
use super::luck::Luck;
use super::metrics::Counted;
use super::toxics::Published;
use bytes::Bytes;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::Instant;

const READ_BYTES: usize = 32 << 10;

/// The bytes that are copied before other tasks get a turn, such as the API, which has to
/// answer at once however busy the connections are.
const TURN_BYTES: usize = 256 << 10;

/// The request to reset both sides of the connection.
#[derive(Debug, PartialEq, Eq)]
pub struct Reset;

pub struct Link<'a, R, W> {
    source: &'a mut R,
    destination: &'a mut W,
    toxics: Follower<Published>,
    luck: Luck,
    counted: Counted,
    alarm: Alarm,
    chain: Chain,
    buffer: Box<[u8]>,
    /// Whether anything has come.
    heard: &'a AtomicBool,
}

impl<'a, R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Link<'a, R, W> {
    pub fn new(
        source: &'a mut R,
        destination: &'a mut W,
        toxics: Follower<Published>,
        luck: Luck,
        counted: Counted,
        heard: &'a AtomicBool,
    ) -> Link<'a, R, W> {
        Link {
            source,
            destination,
            toxics,
            luck,
            counted,
            alarm: Alarm::Unused,
            chain: Chain::new(),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            heard,
        }
    }

    /// Uses tokio's timer, whose clock a test or a simulation can move.
    pub fn with_coarse_alarm(mut self) -> Self {
        self.alarm = Alarm::Coarse;
        self
    }

    /// Returns the destination once nothing more is to be written: then it has to be
    /// closed. It does not matter which side failed.
    pub async fn run(mut self) -> Result<&'a mut W, Reset> {
        self.follow_toxics();
        loop {
            let mut copied = 0;
            while self.chain.is_idle() {
                copied += self.copy_past_the_chain().await;
                if copied >= TURN_BYTES {
                    copied = 0;
                    tokio::task::yield_now().await;
                }
            }
            let wake = match self.chain.advance(Instant::now()) {
                Turn::Reset => return Err(Reset),
                Turn::Wait(wake) => wake,
            };
            let leaving = match self.chain.out().front() {
                Some(Item::End) => return Ok(self.destination),
                Some(Item::Data(chunk)) => Some(chunk.bytes.clone()),
                None => None,
            };
            tokio::select! {
                // Look for a change first, so that no byte that came after it passes
                // before it.
                biased;
                changed = self.toxics.changed() => match changed {
                    Ok(()) => self.follow_toxics(),
                    // The proxy is gone.
                    Err(_) => return Ok(self.destination),
                },
                written = write_some(self.destination, leaving.as_ref()) => match written {
                    Ok(written) => {
                        self.counted.sent(written);
                        self.chain.out().cut(written);
                    }
                    Err(_) => return Ok(self.destination),
                },
                read = self.source.read(&mut self.buffer), if self.chain.takes_input() => {
                    self.take_in(read.unwrap_or(0));
                }
                () = self.alarm.until(wake) => {}
            }
        }
    }

    /// Copies everything that can be read at once, and returns the number of bytes. The
    /// end and a new toxic go to the chain instead, which makes it busy.
    async fn copy_past_the_chain(&mut self) -> usize {
        let read = tokio::select! {
            biased;
            read = self.source.read(&mut self.buffer) => read.unwrap_or(0),
            changed = self.toxics.changed() => {
                self.changed(changed.is_ok());
                return 0;
            }
        };
        // A client that was told that a toxic is active may rely on it.
        if read == 0 || self.toxics.has_changed().unwrap_or(true) {
            self.take_in(read);
            return 0;
        }
        self.has_come(read);
        let mut written = 0;
        while written < read {
            let some = tokio::select! {
                biased;
                some = self.destination.write(&self.buffer[written..read]) => some,
                changed = self.toxics.changed() => {
                    // These bytes came before the change, so they are past the chain
                    // already.
                    let rest = self.chunk(written, read);
                    self.chain.out().push(rest);
                    self.changed(changed.is_ok());
                    return written;
                }
            };
            match some {
                Ok(some) if some > 0 => {
                    self.counted.sent(some);
                    written += some;
                }
                _ => {
                    self.chain.push(Item::End);
                    return written;
                }
            }
        }
        written
    }

    fn changed(&mut self, proxy_is_there: bool) {
        if proxy_is_there {
            self.follow_toxics();
        } else {
            self.chain.push(Item::End);
        }
    }

    /// Gives the bytes read to the present toxics. Zero bytes are the end; an error is an
    /// end as well, and the other side sees it as that.
    fn take_in(&mut self, read: usize) {
        if self.toxics.has_changed().unwrap_or(false) {
            self.follow_toxics();
        }
        self.has_come(read);
        let item = match read {
            0 => Item::End,
            read => self.chunk(0, read),
        };
        self.chain.push(item);
    }

    fn has_come(&self, bytes: usize) {
        self.counted.received(bytes);
        self.heard.store(true, Ordering::Relaxed);
    }

    fn follow_toxics(&mut self) {
        let entries = self.toxics.latest();
        let hits = entries
            .iter()
            .filter(|entry| self.luck.is_hit(entry.id, entry.toxic.toxicity));
        let doses = hits.map(|entry| Dose {
            id: entry.id,
            kind: entry.toxic.kind,
            rng: self.luck.rng_within(entry.id),
        });
        self.chain.follow(doses.collect(), Instant::now());
    }

    fn chunk(&self, from: usize, to: usize) -> Item {
        Item::Data(Chunk {
            bytes: Bytes::copy_from_slice(&self.buffer[from..to]),
            since: Instant::now(),
        })
    }
}

/// Writes some bytes, or waits for ever if there are none.
async fn write_some<W: AsyncWrite + Unpin>(
    destination: &mut W,
    bytes: Option<&Bytes>,
) -> std::io::Result<usize> {
    match bytes {
        None => std::future::pending().await,
        Some(bytes) => match destination.write(bytes).await {
            Ok(0) => Err(std::io::ErrorKind::WriteZero.into()),
            written => written,
        },
    }
}
