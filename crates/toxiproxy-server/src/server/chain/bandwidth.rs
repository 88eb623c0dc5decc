use super::*;

/// Larger chunks are sent in slices of this duration, so that a slow line is steady.
const SLICE_MS: u64 = 100;
/// A fast line has this much waiting, so that it has work while nobody looks after it.
const AHEAD_MS: u64 = 8;
const MOST_AHEAD: u64 = 8 << 20;

/// A toxic that passes data at a rate. A rate of 0 passes nothing until it is changed.
pub struct Bandwidth {
    /// Kilobytes per second are bytes per millisecond.
    pub bytes_per_ms: u64,
    /// When the line has sent all earlier data.
    pub free_at: Instant,
}

impl Machine for Bandwidth {
    fn step(&mut self, input: &mut Queue, output: &mut Queue, now: Instant) -> Step {
        while output.has_room() {
            let Some(chunk) = input.next_chunk(output) else {
                break;
            };
            if self.bytes_per_ms == 0 {
                break;
            }
            let (waiting, since) = (chunk.bytes.len() as u64, chunk.since);
            let slice = waiting.min(self.bytes_per_ms.saturating_mul(SLICE_MS));
            let cost = Duration::from_nanos(slice.saturating_mul(1_000_000) / self.bytes_per_ms);
            let due = self.free_at.max(since) + cost;
            if due > now {
                return Step::WaitUntil(due);
            }
            self.free_at = due;
            input.pass(slice as usize, due, output);
        }
        Step::Wait
    }

    fn capacity(&self) -> usize {
        let ahead = self.bytes_per_ms.saturating_mul(AHEAD_MS).min(MOST_AHEAD);
        SMALL.max(ahead as usize)
    }

    fn change(&mut self, kind: ToxicKind, now: Instant) {
        if let ToxicKind::Bandwidth { rate_kb_per_s } = kind {
            self.bytes_per_ms = rate_kb_per_s;
            // Waiting data is sent from now on, and not as if it had been sent all the
            // while.
            self.free_at = now;
        }
    }
}
