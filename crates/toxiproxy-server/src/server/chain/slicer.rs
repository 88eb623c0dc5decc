use super::*;

/// A toxic that cuts data into small pieces, with a pause after each.
pub struct Slicer {
    rng: Rng,
    average_size: u64,
    size_variation: u64,
    pause: Duration,
    free_at: Instant,
}

impl Slicer {
    pub fn new(rng: Rng, now: Instant) -> Slicer {
        Slicer {
            rng,
            average_size: 1,
            size_variation: 0,
            pause: Duration::ZERO,
            free_at: now,
        }
    }

    fn piece(&mut self) -> usize {
        let least = self.average_size - self.size_variation;
        let most = self.average_size + self.size_variation;
        let size = self.rng.u64(least..=most).max(1);
        usize::try_from(size).unwrap_or(usize::MAX)
    }
}

impl Machine for Slicer {
    fn step(&mut self, input: &mut Queue, output: &mut Queue, now: Instant) -> Step {
        while output.has_room() {
            let Some(&Chunk { since, .. }) = input.next_chunk(output) else {
                break;
            };
            // Timers are coarser than most pauses, so the time of a piece is counted from
            // the one before, and not from when the timer fired.
            let due = self.free_at.max(since);
            if due > now {
                return Step::WaitUntil(due);
            }
            self.free_at = due + self.pause;
            input.pass(self.piece(), due, output);
        }
        Step::Wait
    }

    fn change(&mut self, kind: ToxicKind, now: Instant) {
        if let ToxicKind::Slicer {
            average_size,
            size_variation,
            delay_us,
        } = kind
        {
            // Code that builds the kind by hand may have been less strict than the API
            // is.
            self.average_size = average_size.max(1);
            self.size_variation = size_variation.min(self.average_size);
            self.pause = Duration::from_micros(delay_us);
            self.free_at = now;
        }
    }
}
