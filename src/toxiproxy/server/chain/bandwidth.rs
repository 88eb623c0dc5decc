use super::machine::{Machine, Step};
use super::queue::{Item, Queue};
use crate::toxiproxy::ToxicKind;
use std::time::Duration;
use tokio::time::Instant;

/// Larger chunks are sent in slices, so that a slow line is steady.
const SLICE_MS: u64 = 100;

/// Lets data go at a rate; at a rate of 0 none, until that is changed.
pub struct Bandwidth {
    /// Kilobytes a second are bytes a millisecond.
    bytes_per_ms: u64,
    /// When the line has sent everything that went before.
    free_at: Instant,
}

impl Bandwidth {
    pub fn new(now: Instant) -> Bandwidth {
        Bandwidth {
            bytes_per_ms: 0,
            free_at: now,
        }
    }
}

impl Machine for Bandwidth {
    fn step(&mut self, input: &mut Queue, output: &mut Queue, now: Instant) -> Step {
        while output.has_room() {
            let (waiting, since) = match input.front() {
                None => break,
                Some(Item::Data(_)) if self.bytes_per_ms == 0 => break,
                Some(Item::Data(chunk)) => (chunk.bytes.len() as u64, chunk.since),
                Some(Item::End) => {
                    output.push(Item::End);
                    input.pop();
                    continue;
                }
            };
            let slice = waiting.min(self.bytes_per_ms.saturating_mul(SLICE_MS));
            let cost = Duration::from_nanos(slice.saturating_mul(1_000_000) / self.bytes_per_ms);
            let due = self.free_at.max(since) + cost;
            if due > now {
                return Step::WaitUntil(due);
            }
            self.free_at = due;
            if let Some(mut chunk) = input.cut(slice as usize) {
                chunk.since = due;
                output.push(Item::Data(chunk));
            }
        }
        Step::Wait
    }

    fn change(&mut self, kind: ToxicKind, now: Instant) {
        if let ToxicKind::Bandwidth { rate_kb_per_s } = kind {
            self.bytes_per_ms = rate_kb_per_s;
            // What waited is sent from now on, and not as if it had been all the while.
            self.free_at = now;
        }
    }
}
