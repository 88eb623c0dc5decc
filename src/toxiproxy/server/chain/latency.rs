use super::machine::{Machine, Step};
use super::queue::{Item, Queue};
use crate::toxiproxy::ToxicKind;
use fastrand::Rng;
use std::time::Duration;
use tokio::time::Instant;

/// What is under way at once. Less would make a slow line of a late one.
const CAPACITY: usize = 8 << 20;

/// Lets each chunk go a while after it came, and none before an older one. The
/// end of the stream waits for the data before it and for nothing else.
pub struct Latency {
    latency: Duration,
    jitter: Duration,
    rng: Rng,
    due: Option<Instant>,
    last: Option<Instant>,
}

impl Latency {
    pub fn new(rng: Rng) -> Latency {
        Latency {
            latency: Duration::ZERO,
            jitter: Duration::ZERO,
            rng,
            due: None,
            last: None,
        }
    }

    /// Uniform from latency − jitter to latency + jitter, and never negative.
    fn delay(&mut self) -> Duration {
        let spread = self.jitter.mul_f64(2.0 * self.rng.f64());
        (self.latency + spread).saturating_sub(self.jitter)
    }
}

impl Machine for Latency {
    fn step(&mut self, input: &mut Queue, output: &mut Queue, now: Instant) -> Step {
        while output.has_room() {
            let since = match input.front() {
                None => break,
                Some(Item::Data(chunk)) => chunk.since,
                Some(Item::End) => {
                    output.push(Item::End);
                    input.pop();
                    continue;
                }
            };
            let due = match self.due {
                Some(due) => due,
                None => (since + self.delay()).max(self.last.unwrap_or(since)),
            };
            if due > now {
                self.due = Some(due);
                return Step::WaitUntil(due);
            }
            self.due = None;
            self.last = Some(due);
            if let Some(mut chunk) = input.cut(usize::MAX) {
                chunk.since = due;
                output.push(Item::Data(chunk));
            }
        }
        Step::Wait
    }

    fn change(&mut self, kind: ToxicKind, _now: Instant) {
        if let ToxicKind::Latency {
            latency_ms,
            jitter_ms,
        } = kind
        {
            self.latency = Duration::from_millis(latency_ms);
            self.jitter = Duration::from_millis(jitter_ms);
            self.due = None;
            self.last = None;
        }
    }

    fn capacity(&self) -> usize {
        CAPACITY
    }
}
