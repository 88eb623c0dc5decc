use super::lanes::MARKER_ANSWERS;
use super::replies::Replies;
use super::wire::Wire;
use super::*;
use futures_util::future::join_all;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// A stream of one command for each of a great many keys, in batches on a few connections. At
/// any time it holds two batches per connection in memory.
pub(in crate::load) struct Stream<'a> {
    pub(in crate::load) target: &'a Target,
    pub(in crate::load) commands: &'a Commands,
    /// The number of commands in a batch; the next batch is sent when all are answered.
    pub(in crate::load) pipeline: u64,
    pub(in crate::load) connections: u32,
    pub(in crate::load) marker: Option<&'a Marker>,
}

/// The answers so far.
#[derive(Debug, Default)]
pub(in crate::load) struct Done {
    made: AtomicU64,
    refused: AtomicU64,
}

impl Done {
    fn count(&self, replies: &Replies) {
        self.made.fetch_add(replies.ok, Ordering::Relaxed);
        self.refused.fetch_add(replies.nil, Ordering::Relaxed);
    }

    pub(in crate::load) fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    pub(in crate::load) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

/// The reason why a stream ended early.
#[derive(Clone, Debug, thiserror::Error)]
pub(in crate::load) enum Stop {
    #[error("interrupted")]
    Interrupted,
    #[error("the server is out of memory ({0})")]
    OutOfMemory(String),
    #[error("the server refused: {0}")]
    Refused(String),
    #[error("the server is gone: {0}")]
    Lost(String),
}

/// Commands that are written to the buffer and not sent yet.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    lane: u64,
    indexes: Range<u64>,
}

impl Stream<'_> {
    /// Returns when every key of these lanes was answered, or when one connection had to stop;
    /// the others then end after the batch that they have sent.
    pub(in crate::load) async fn run(
        &self,
        lanes: Vec<Lane>,
        done: &Done,
        interrupt: &CancellationToken,
    ) -> Result<(), Stop> {
        let lanes = Mutex::new(VecDeque::from(lanes));
        let stop = interrupt.child_token();
        let connections = (0..self.connections).map(|_| async {
            let ended = self.connection(&lanes, done, &stop).await;
            if ended.is_err() {
                stop.cancel();
            }
            ended
        });
        let ended = join_all(connections).await;
        let mut stops = ended.into_iter().filter_map(Result::err);
        let first = stops.next();
        // A connection that was only told to stop is not the cause.
        let reason = stops.find(|stop| !matches!(stop, Stop::Interrupted));
        match first {
            None => Ok(()),
            Some(Stop::Interrupted) => Err(reason.unwrap_or(Stop::Interrupted)),
            Some(first) => Err(first),
        }
    }

    async fn connection(
        &self,
        lanes: &Mutex<VecDeque<Lane>>,
        done: &Done,
        stop: &CancellationToken,
    ) -> Result<(), Stop> {
        let mut wire = self.target.wire().await?;
        let (mut sending, mut next) = (Batch::default(), Batch::default());
        // Keys that were answered and are not in the marker yet.
        let mut answered: Option<(u64, u64)> = None;
        let mut lane = None;
        let mut is_more = self.prepare(&mut next, &mut lane, lanes);
        while is_more {
            if stop.is_cancelled() {
                self.note(&mut wire, answered).await?;
                return Err(Stop::Interrupted);
            }
            std::mem::swap(&mut sending, &mut next);
            let marked = self.mark(answered.take(), &mut sending.bytes);
            wire.write(&sending.bytes).await?;
            // This is prepared while the server works on the previous batch.
            is_more = self.prepare(&mut next, &mut lane, lanes);
            let keys = sending.indexes.end - sending.indexes.start;
            let replies = wire.read(keys + marked).await?;
            done.count(&replies);
            if let Some(error) = replies.error {
                return Err(refusal(error));
            }
            answered = Some((sending.lane, sending.indexes.end));
        }
        self.note(&mut wire, answered).await
    }

    /// Prepares the next batch from the lane of this connection, or from a new one. Two
    /// connections never share a lane, or one would mark keys that the other has not made.
    fn prepare(
        &self,
        batch: &mut Batch,
        lane: &mut Option<Lane>,
        lanes: &Mutex<VecDeque<Lane>>,
    ) -> bool {
        let is_open = |lane: &Lane| !lane.indexes.is_empty();
        if !lane.as_ref().is_some_and(is_open) {
            let mut lanes = lanes.lock();
            *lane = std::iter::from_fn(|| lanes.pop_front()).find(is_open);
        }
        let Some(lane) = lane else { return false };
        let start = lane.indexes.start;
        let end = lane.indexes.end.min(start.saturating_add(self.pipeline));
        lane.indexes.start = end;
        batch.lane = lane.number;
        batch.indexes = start..end;
        batch.bytes.clear();
        for index in start..end {
            self.commands.write(index, &mut batch.bytes);
        }
        true
    }

    fn mark(&self, answered: Option<(u64, u64)>, out: &mut Vec<u8>) -> u64 {
        let (Some(marker), Some((lane, next))) = (self.marker, answered) else {
            return 0;
        };
        marker.write(lane, next, out);
        MARKER_ANSWERS
    }

    /// Sends the last marker of a connection that ends in order. A server that is out of memory
    /// may refuse it; then a batch is made again later, which changes nothing.
    async fn note(&self, wire: &mut Wire, answered: Option<(u64, u64)>) -> Result<(), Stop> {
        let mut out = Vec::new();
        let answers = self.mark(answered, &mut out);
        wire.send(&out, answers).await?;
        Ok(())
    }
}

fn refusal(error: String) -> Stop {
    match error.starts_with("OOM") {
        true => Stop::OutOfMemory(error),
        false => Stop::Refused(error),
    }
}
