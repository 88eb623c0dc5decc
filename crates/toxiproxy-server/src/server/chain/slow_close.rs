use super::*;

/// A toxic that passes data at once, and the end of the stream with a delay.
#[derive(Default)]
pub struct SlowClose {
    delay: Duration,
    ends_at: Option<Instant>,
}

impl Machine for SlowClose {
    fn step(&mut self, input: &mut Queue, output: &mut Queue, now: Instant) -> Step {
        while output.has_room() {
            if let Some(Item::End) = input.front() {
                let ends_at = *self.ends_at.get_or_insert(now + self.delay);
                if ends_at > now {
                    return Step::WaitUntil(ends_at);
                }
            }
            match input.pop() {
                Some(item) => output.push(item),
                None => break,
            }
        }
        Step::Wait
    }

    fn change(&mut self, kind: ToxicKind, _now: Instant) {
        if let ToxicKind::SlowClose { delay_ms } = kind {
            self.delay = Duration::from_millis(delay_ms);
            self.ends_at = None;
        }
    }
}
