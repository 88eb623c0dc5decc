use super::*;

/// The data that can be under way at once. Less would make a slow line of a late one: at 100 ms this is
/// some 400 MB/s.
const CAPACITY: usize = 40 << 20;

/// A toxic that passes each chunk with a delay, and none before an older one. The end of
/// the stream waits only for the data before it.
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

    /// Returns a delay that is uniform from latency − jitter to latency + jitter, and
    /// never negative.
    fn delay(&mut self) -> Duration {
        let spread = self.jitter.mul_f64(2.0 * self.rng.f64());
        (self.latency + spread).saturating_sub(self.jitter)
    }
}

impl Machine for Latency {
    fn step(&mut self, input: &mut Queue, output: &mut Queue, now: Instant) -> Step {
        while output.has_room() {
            let Some(&Chunk { since, .. }) = input.next_chunk(output) else {
                break;
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
            input.pass(usize::MAX, due, output);
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
