use super::*;

/// A toxic that passes `limit` bytes and then closes. Bytes that have passed still count
/// when the limit is changed.
#[derive(Default)]
pub struct LimitData {
    limit: u64,
    passed: u64,
}

impl Machine for LimitData {
    fn step(&mut self, input: &mut Queue, output: &mut Queue, _now: Instant) -> Step {
        while output.has_room() {
            if input.next_chunk(output).is_none() {
                break;
            }
            let left = self.limit.saturating_sub(self.passed);
            let left = usize::try_from(left).unwrap_or(usize::MAX);
            if left > 0
                && let Some(chunk) = input.cut(left)
            {
                self.passed += chunk.bytes.len() as u64;
                output.push(Item::Data(chunk));
            }
            if self.passed >= self.limit {
                return Step::Close;
            }
        }
        Step::Wait
    }

    fn change(&mut self, kind: ToxicKind, _now: Instant) {
        if let ToxicKind::LimitData { bytes } = kind {
            self.limit = bytes;
        }
    }
}
